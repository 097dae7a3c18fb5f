//! Fairness index.

/// Returns Jain's index: 1 if all shares are equal, 1/n if one of n participants has everything. Returns `None` if all
/// shares are zero.
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", 1984.
#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(crate) fn jain(shares: &[usize]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| {
        let share = *share as f64;
        (sum + share, squares + share * share)
    });
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}
