//! Table of the results, and the ratios with a goal.

use crate::measure::{Figures, TASKS};
use crate::result_file::{self, verdict};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    OneNode,
    FiveNodes,
    FiveNodesOneFrozen,
    FiveNodesOneThread,
}

#[derive(Default)]
pub(crate) struct Report {
    scenes: Vec<(Scene, Vec<Figures>)>,
}

/// Ratio with a goal.
struct Goal {
    what: &'static str,
    ratio: f64,
    limit: f64,
    at_most: bool,
}

/// Ratio without a goal, which shows a lower bound.
struct Bound {
    what: String,
    ratio: f64,
}

impl Report {
    pub(crate) fn add(&mut self, scene: Scene, figures: Vec<Figures>) {
        self.scenes.push((scene, figures));
    }

    pub(crate) fn write(&self) {
        result_file::write("uncontended", "Uncontended locks", self);
    }

    fn figures(&self, scene: Scene, name: &str) -> &Figures {
        let of_scene = self.scenes.iter().find(|(other, _)| *other == scene);
        let figures = of_scene.and_then(|(_, figures)| figures.iter().find(|figures| figures.name.starts_with(name)));
        figures.unwrap_or_else(|| panic!("{name} was not measured"))
    }

    fn p50(&self, scene: Scene, name: &str) -> f64 {
        self.figures(scene, name).loops[0].percentile(50).as_secs_f64()
    }

    fn busy(&self, scene: Scene, name: &str) -> f64 {
        self.figures(scene, name).loops[TASKS.len() - 1].per_second()
    }

    /// Returns the CPU time of this process per pair, with `TASKS[load]` tasks.
    fn cpu(&self, scene: Scene, name: &str, load: usize) -> f64 {
        self.figures(scene, name).loops[load].cpu_per_pair().as_secs_f64()
    }

    fn goals(&self) -> Vec<Goal> {
        use Scene::{FiveNodes, FiveNodesOneFrozen, OneNode};
        let (awaited, unawaited, ours, rslock) =
            ("raw pair, release awaited", "raw pair, release not awaited", "ours", "rslock");
        let goal = |what, ratio, limit, at_most| Goal { what, ratio, limit, at_most };
        vec![
            goal(
                "1 node, 1 task, p50: ours / raw pair whose release is awaited",
                self.p50(OneNode, ours) / self.p50(OneNode, awaited),
                0.65,
                true,
            ),
            goal(
                "1 node, 1 task, p50: ours / raw pair whose release is not awaited",
                self.p50(OneNode, ours) / self.p50(OneNode, unawaited),
                1.2,
                true,
            ),
            goal(
                "1 node, 512 tasks, throughput: ours / raw pair whose release is awaited",
                self.busy(OneNode, ours) / self.busy(OneNode, awaited),
                1.2,
                false,
            ),
            goal("1 task, p50, ours: 5 nodes / 1 node", self.p50(FiveNodes, ours) / self.p50(OneNode, ours), 2.0, true),
            goal(
                "1 task, p50, ours: 5 nodes with one frozen / 5 nodes",
                self.p50(FiveNodesOneFrozen, ours) / self.p50(FiveNodes, ours),
                1.1,
                true,
            ),
            goal(
                "5 nodes, 1 task, p50: ours / rslock",
                self.p50(FiveNodes, ours) / self.p50(FiveNodes, rslock),
                0.35,
                true,
            ),
            goal(
                "5 nodes, 512 tasks, throughput: ours / rslock",
                self.busy(FiveNodes, ours) / self.busy(FiveNodes, rslock),
                1.5,
                false,
            ),
            goal(
                "1 node, 1 task, CPU of this process: ours / raw pair whose release is awaited",
                self.cpu(OneNode, ours, 0) / self.cpu(OneNode, awaited, 0),
                0.9,
                true,
            ),
            goal(
                "5 nodes, 1 task, CPU of this process: ours / rslock",
                self.cpu(FiveNodes, ours, 0) / self.cpu(FiveNodes, rslock, 0),
                0.4,
                true,
            ),
            goal(
                "64 tasks, CPU of this process, ours: 5 nodes / 1 node",
                self.cpu(FiveNodes, ours, 1) / self.cpu(OneNode, ours, 1),
                4.0,
                true,
            ),
            goal(
                "512 tasks, CPU of this process, ours: 5 nodes / 1 node",
                self.cpu(FiveNodes, ours, 2) / self.cpu(OneNode, ours, 2),
                4.0,
                true,
            ),
        ]
    }

    /// Returns the lower bounds for every client with these commands, on blocking sockets and on tokio's sockets.
    fn bounds(&self) -> Vec<Bound> {
        use Scene::{FiveNodes, FiveNodesOneThread, OneNode};
        let sides = [("bare sockets", "the same bytes on bare"), ("tokio's sockets", "the same bytes on tokio")];
        let against = [
            (OneNode, "raw pair whose release is awaited", "raw pair, release awaited"),
            (FiveNodes, "rslock", "rslock"),
        ];
        let mut bounds = Vec::new();
        for (scene, peer, figures) in against {
            for (side, of_side) in sides {
                let p50 = self.p50(scene, of_side) / self.p50(scene, figures);
                let cpu = self.cpu(scene, of_side, 0) / self.cpu(scene, figures, 0);
                let title = scene.title();
                bounds.push(Bound { what: format!("{title}, 1 task, p50: {side} / {peer}"), ratio: p50 });
                bounds
                    .push(Bound { what: format!("{title}, 1 task, CPU of this process: {side} / {peer}"), ratio: cpu });
            }
        }
        let one_thread = self.cpu(FiveNodesOneThread, "ours", 0);
        for (what, than) in [
            ("the same with all threads", self.cpu(FiveNodes, "ours", 0)),
            ("rslock there", self.cpu(FiveNodesOneThread, "rslock", 0)),
            ("tokio's sockets there", self.cpu(FiveNodesOneThread, "the same bytes on tokio", 0)),
        ] {
            let what = format!("5 nodes, 1 task, CPU of this process: ours on a runtime of one thread / {what}");
            bounds.push(Bound { what, ratio: one_thread / than });
        }
        let raw = |scene| self.cpu(scene, "raw pair, release awaited", 2);
        let what = "512 tasks, CPU of this process, raw pair whose release is awaited: 5 nodes / 1 node".to_owned();
        bounds.push(Bound { what, ratio: raw(FiveNodes) / raw(OneNode) });
        bounds
    }
}

impl Goal {
    fn is_met(&self) -> bool {
        if self.at_most { self.ratio <= self.limit } else { self.ratio >= self.limit }
    }
}

impl Scene {
    const fn title(self) -> &'static str {
        match self {
            Self::OneNode => "1 node",
            Self::FiveNodes => "5 nodes",
            Self::FiveNodesOneFrozen => "5 nodes, one frozen",
            Self::FiveNodesOneThread => "5 nodes, runtime of one thread",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One pair is an acquisition and the release as the caller sees them. All in one run, in turns. CPU is that of all\n\
             threads of the client, for one pair.\n"
        )?;
        writeln!(f, "| nodes | contestant | tasks | p50 | p99 | pairs per second | CPU | failed |")?;
        writeln!(f, "|---|---|---:|---:|---:|---:|---:|---:|")?;
        for (scene, all) in &self.scenes {
            for figures in all {
                for (tasks, result) in TASKS.into_iter().zip(&figures.loops).filter(|(_, result)| !result.is_empty()) {
                    let (p50, p99) = (result.percentile(50), result.percentile(99));
                    let (title, name, rate) = (scene.title(), figures.name, result.per_second());
                    let (cpu, failures) = (result.cpu_per_pair(), result.failures);
                    writeln!(
                        f,
                        "| {title} | {name} | {tasks} | {p50:.1?} | {p99:.1?} | {rate:.0} | {cpu:.1?} | {failures} |"
                    )?;
                }
            }
        }
        writeln!(f, "\n| ratio | measured | to reach | |")?;
        writeln!(f, "|---|---:|---:|---|")?;
        for goal in self.goals() {
            let (sign, verdict) = (if goal.at_most { "at most" } else { "at least" }, verdict(goal.is_met()));
            writeln!(f, "| {} | {:.2} | {sign} {} | {verdict} |", goal.what, goal.ratio, goal.limit)?;
        }
        for Bound { what, ratio } in self.bounds() {
            writeln!(f, "| {what} | {ratio:.2} | | |")?;
        }
        write!(f, "{}", include_str!("method.md"))
    }
}
