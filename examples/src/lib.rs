//! Runnable examples; see the `[[bin]]` targets.
