//! How evenly something was given to those who wanted it.

/// 1 when all shares are equal, 1/n when one of n has everything; `None` when there is nothing.
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
