//! Draws the locks in the terminal.

use super::board::{Board, Row as Lock};
use crate::age::age;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of shown messages: 5, the nodes of an ordinary quorum.
const MESSAGE_LIMIT: usize = 5;

pub(super) fn draw(frame: &mut Frame<'_>, board: &Board) {
    let messages: Vec<_> = board.messages().iter().take(MESSAGE_LIMIT).map(|text| Line::from(text.as_str())).collect();
    let height = u16::try_from(messages.len()).unwrap_or(0);
    let [table, below] = Layout::vertical([Constraint::Min(3), Constraint::Length(height)]).areas(frame.area());
    frame.render_widget(locks(board), table);
    frame.render_widget(Paragraph::new(messages).style(Style::new().fg(Color::Red)), below);
}

fn locks(board: &Board) -> Table<'_> {
    let widths = [Constraint::Fill(2), Constraint::Length(9), Constraint::Length(17), Constraint::Fill(3)];
    let title = match (board.updates(), board.rows().len()) {
        (0, _) => format!(" {}: loading.. ", board.pattern()),
        (_, 1) => format!(" {}: 1 lock ", board.pattern()),
        (_, count) => format!(" {}: {count} locks ", board.pattern()),
    };
    Table::new(board.rows().iter().map(row), widths)
        .header(
            Row::new(["key", "held for", "processes waiting", "holder"])
                .style(Style::new().add_modifier(Modifier::BOLD)),
        )
        .block(Block::bordered().title(title).title_bottom(footer(board)))
}

/// Returns the keys, the order, and the time of the last update.
fn footer(board: &Board) -> String {
    let keys = format!(" q: quit, s: sort (by {})", board.sort().name());
    match board.updated() {
        Some(time) => format!("{keys}, updated {} UTC ", clock(time)),
        None => format!("{keys} "),
    }
}

/// Returns the time of the day, such as `12:34:56`.
fn clock(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn row(lock: &Lock) -> Row<'_> {
    let style = if lock.waiting > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    let age = lock.age.map(age).unwrap_or_default();
    Row::new([lock.key.clone(), age, lock.waiting.to_string(), lock.holder.clone()]).style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Sort;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use redlock_runtime::LockManager;
    use redlock_runtime::admin::InspectOptions;

    #[tokio::test]
    async fn table_shows_key_holder_and_waiters() -> Result<(), Box<dyn std::error::Error>> {
        let manager = LockManager::builder().label("shop").in_memory()?;
        let _guard = manager.acquire("order:7").await?;
        let mut board = Board::new("order:*", Sort::default());
        let locks = manager.inspect_all(["order:7", "order:8"], InspectOptions::default()).await;
        board.update(&manager.list("order:*").await, &locks);
        let mut terminal = Terminal::new(TestBackend::new(100, 8))?;
        terminal.draw(|frame| draw(frame, &board))?;
        let text = terminal.backend().to_string();
        assert!(text.contains("order:*: 1 lock ") && text.contains("order:7") && text.contains("shop;"), "{text}");
        assert!(
            text.contains("processes waiting") && text.contains("q: quit, s: sort (by waiting), updated "),
            "{text}"
        );
        assert!(!text.contains("order:8") && text.contains("memory:"), "{text}");
        Ok(())
    }

    #[tokio::test]
    async fn locks_are_sorted_by_waiters_age_or_key() -> Result<(), Box<dyn std::error::Error>> {
        let manager = LockManager::in_memory();
        let _guards = [manager.acquire("order:8").await?, manager.acquire("order:7").await?];
        let locks = manager.inspect_all(["order:8", "order:7"], InspectOptions::default()).await;
        let mut board = Board::new("order:*", Sort::Key);
        board.update(&manager.list("order:*").await, &locks);
        let keys = |board: &Board| board.rows().iter().map(|row| row.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&board), ["order:7", "order:8"]);
        for expected in [Sort::Waiting, Sort::Age, Sort::Key] {
            board.change_sort();
            assert_eq!(board.sort(), expected);
        }
        assert_eq!(clock(UNIX_EPOCH + std::time::Duration::from_secs(86_400 + 3_723)), "01:02:03");
        Ok(())
    }
}
