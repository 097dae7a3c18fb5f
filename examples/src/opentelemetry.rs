//! Adapter that exports the statistics of a lock manager as OpenTelemetry instruments.
//!
//! The manager keeps cumulative counts. The adapter reads them once per export interval, and records the difference to
//! the previous reading. Attributes contain key templates and source locations, never keys.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{LockSite, Stats};
use std::time::Duration;

/// Instruments for the statistics of one manager.
#[derive(Debug)]
pub struct LockMetrics {
    acquire: Histogram<f64>,
    hold: Histogram<f64>,
    held: Gauge<u64>,
    waiting: Gauge<u64>,
    lost: Counter<u64>,
    node_up: Gauge<u64>,
    /// Statistics at the previous call of `record`.
    before: Stats,
}

impl LockMetrics {
    /// Creates the instruments with `meter`.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        // Use the bucket bounds of the manager, so that each of its buckets maps to one bucket of the instrument.
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

    /// Records everything that `manager` has counted since the previous call.
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

/// Returns the upper bound of a bucket in seconds.
fn seconds((bound, _): (Duration, u64)) -> f64 {
    if bound == Duration::MAX { f64::INFINITY } else { bound.as_secs_f64() }
}

/// Attributes of a lock site. Two functions may share a template, so the source line tells them apart.
fn attributes(site: &LockSite) -> [KeyValue; 3] {
    let line = site.line.map(|line| line.to_string()).unwrap_or_default();
    let module = site.module.unwrap_or_default();
    [KeyValue::new("lock", site.to_string()), KeyValue::new("site", line), KeyValue::new("module", module)]
}

/// Records a histogram's counts. OpenTelemetry accepts only single values, so each count is recorded as a value in the
/// middle of its bucket.
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
    async fn each_measurement_is_exported_once() -> Result<(), Box<dyn std::error::Error>> {
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
        // Two source lines have acquired the lock, once each.
        assert_eq!(durations.map(|text| text.matches("count: 1,").count()), Some(2), "{told}");
        Ok(held.release().await?)
    }
}
