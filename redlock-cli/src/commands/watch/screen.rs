//! How the locks look in a terminal.

use super::board::{Board, Row as Lock};
use crate::age::age;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table};

/// How many complaints are shown: as many as nodes of an ordinary quorum.
const MOST_COMPLAINTS: usize = 5;

pub(super) fn draw(frame: &mut Frame<'_>, board: &Board) {
    let complaints: Vec<_> =
        board.complaints().iter().take(MOST_COMPLAINTS).map(|text| Line::from(text.as_str())).collect();
    let height = u16::try_from(complaints.len()).unwrap_or(0);
    let [table, below] = Layout::vertical([Constraint::Min(3), Constraint::Length(height)]).areas(frame.area());
    frame.render_widget(locks(board), table);
    frame.render_widget(Paragraph::new(complaints).style(Style::new().fg(Color::Red)), below);
}

fn locks(board: &Board) -> Table<'_> {
    let widths = [Constraint::Fill(2), Constraint::Length(9), Constraint::Length(17), Constraint::Fill(3)];
    let title = match board.looks() {
        0 => format!(" {}: looking.. ", board.pattern()),
        _ => format!(" {}: {} locks ", board.pattern(), board.rows().len()),
    };
    Table::new(board.rows().iter().map(row), widths)
        .header(
            Row::new(["key", "held for", "processes waiting", "holder"])
                .style(Style::new().add_modifier(Modifier::BOLD)),
        )
        .block(Block::bordered().title(title).title_bottom(" q ends "))
}

fn row(lock: &Lock) -> Row<'_> {
    let style = if lock.waiting > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    let age = lock.age.map(age).unwrap_or_default();
    Row::new([lock.key.clone(), age, lock.waiting.to_string(), lock.holder.clone()]).style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use redlock_runtime::LockManager;

    #[tokio::test]
    async fn the_table_names_key_holder_and_waiters() -> Result<(), Box<dyn std::error::Error>> {
        let manager = LockManager::builder().label("shop").in_memory()?;
        let _guard = manager.acquire("order:7").await?;
        let mut board = Board::new("order:*");
        let locks = manager.inspect_all(["order:7", "order:8"], true).await;
        board.take_in(&manager.list("order:*", 10, std::time::Duration::from_secs(1)).await, &locks);
        let mut terminal = Terminal::new(TestBackend::new(100, 8))?;
        terminal.draw(|frame| draw(frame, &board))?;
        let text = terminal.backend().to_string();
        assert!(text.contains("order:*: 1 locks") && text.contains("order:7") && text.contains("shop;"), "{text}");
        assert!(text.contains("processes waiting"), "{text}");
        assert!(!text.contains("order:8") && text.contains("memory:"), "{text}");
        Ok(())
    }
}
