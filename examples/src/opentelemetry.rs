//! The numbers of a lock manager as instruments of OpenTelemetry.
//!
//! The manager counts by itself, so an adapter asks it now and then, as often as metrics are exported, and passes on what has
//! been counted since. Attributes are templates and places in the source, never keys.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{LockSite, Stats};
use std::time::Duration;

/// Passes the numbers of one manager on.
#[derive(Debug)]
pub struct LockMetrics {
    acquire: Histogram<f64>,
    hold: Histogram<f64>,
    held: Gauge<u64>,
    waiting: Gauge<u64>,
    lost: Counter<u64>,
    node_up: Gauge<u64>,
    /// What was passed on already.
    before: Stats,
}

impl LockMetrics {
    /// The instruments, made by `meter`.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        // The same buckets as those of the manager, so that none is counted in two halves.
        let bounds = || redlock_runtime::admin::Histogram::default().buckets().map(seconds).collect::<Vec<_>>();
        let finite = || bounds().into_iter().filter(|bound| bound.is_finite()).collect();
        let durations = |name| meter.f64_histogram(name).with_unit("s").with_boundaries(finite()).build();
        Self {
            acquire: durations("redlock.acquire.duration"),
            hold: durations("redlock.hold.duration"),
            held: meter.u64_gauge("redlock.held").build(),
            waiting: meter.u64_gauge("redlock.waiting").build(),
            lost: meter.u64_counter("redlock.lost").build(),
            node_up: meter.u64_gauge("redlock.node.up").build(),
            before: Stats::default(),
        }
    }

    /// Passes on what `manager` has counted since the last time.
    pub fn record(&mut self, manager: &LockManager) {
        let now = manager.stats();
        let since = now.since(&self.before);
        for site in &since.sites {
            let attributes = attributes(&site.site);
            record(&self.acquire, &site.wait, &attributes);
            record(&self.hold, &site.hold, &attributes);
            self.held.record(site.held_now, &attributes);
            self.waiting.record(site.waiting_now, &attributes);
            self.lost.add(site.lost, &attributes);
        }
        for node in &since.nodes {
            self.node_up.record(node.is_up.into(), &[KeyValue::new("node", node.node.to_string())]);
        }
        self.before = now;
    }
}

/// The upper end of a bucket.
fn seconds((bound, _): (Duration, u64)) -> f64 {
    if bound == Duration::MAX { f64::INFINITY } else { bound.as_secs_f64() }
}

/// Two functions may have the same template, and one function has one line.
fn attributes(site: &LockSite) -> [KeyValue; 3] {
    let line = site.line.map(|line| line.to_string()).unwrap_or_default();
    let module = site.module.unwrap_or_default();
    [KeyValue::new("lock", site.to_string()), KeyValue::new("site", line), KeyValue::new("module", module)]
}

/// OpenTelemetry takes one time after the other, so each is passed on as one in the middle of its bucket.
fn record(instrument: &Histogram<f64>, counted: &redlock_runtime::admin::Histogram, attributes: &[KeyValue]) {
    for (bound, count) in counted.buckets() {
        let middle = if bound == Duration::MAX { Duration::from_secs(1 << 21) } else { bound * 3 / 4 };
        (0..count).for_each(|_| instrument.record(middle.as_secs_f64(), attributes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::metrics::MeterProvider;
    use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
    use redlock_runtime::LockRequest;

    #[tokio::test]
    async fn what_was_counted_is_passed_on_once() -> Result<(), Box<dyn std::error::Error>> {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let manager = LockManager::in_memory();
        let mut metrics = LockMetrics::new(&provider.meter("redlock"));
        let request = || LockRequest::new("order:4711").label("order:{id}");
        manager.acquire(request()).await?.release().await?;
        metrics.record(&manager);
        let held = manager.acquire(request()).await?;
        metrics.record(&manager);
        metrics.record(&manager);
        provider.force_flush()?;
        let told = format!("{:?}", exporter.get_finished_metrics()?);
        for name in ["acquire.duration", "hold.duration", "held", "waiting", "lost", "node.up"] {
            assert!(told.contains(&format!("\"redlock.{name}\"")), "{name} in {told}");
        }
        assert!(told.contains("order:{id}") && !told.contains("4711"), "{told}");
        let durations =
            told.split("\"redlock.acquire.duration\"").nth(1).and_then(|rest| rest.split("redlock.hold").next());
        // Two lines have asked, once each.
        assert_eq!(durations.map(|text| text.matches("count: 1,").count()), Some(2), "{told}");
        Ok(held.release().await?)
    }
}
