//! Reader of the list of layers on a page.

/// Returns the lines of the fenced block for `name`, without the descriptions.
pub(super) fn layers(page: &str, name: &str) -> Vec<String> {
    let fence = format!("```text {name}");
    let block = page.lines().skip_while(|line| line.trim_end() != fence).skip(1).take_while(|line| *line != "```");
    // A line that begins with a space continues the description of the layer before it.
    let lines = block.filter(|line| !line.is_empty() && !line.starts_with(' '));
    lines.map(|line| line.split("  ").next().unwrap_or(line).to_owned()).collect()
}
