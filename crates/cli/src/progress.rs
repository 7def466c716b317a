//! The progress bar on standard error; nothing where that is no terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use coload::{Progress, ProgressCallback};
use indicatif::{HumanCount, ProgressStyle};

/// With a known size: a bar, the rate and the time left.
const TEMPLATE: &str = "{bar:24} {percent:>3}%  {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  eta {eta}  {msg}";
/// Without a known size, as of standard input: what was read, and the rate.
const TEMPLATE_STREAM: &str = "{spinner} {decimal_bytes}  {decimal_bytes_per_sec}  {msg}";

/// A bar while a load runs, or another long work.
#[derive(Clone)]
pub struct ProgressBar {
    bar: Option<indicatif::ProgressBar>,
}

impl ProgressBar {
    /// A bar, if there is a terminal to show it on.
    pub fn on_terminal() -> Self {
        let shown = std::io::stderr().is_terminal();
        ProgressBar { bar: shown.then(|| indicatif::ProgressBar::new(0)) }
    }

    /// What a load calls.
    pub fn callback(&self) -> Option<ProgressCallback> {
        let bar = self.bar.clone()?;
        bar.set_style(style(TEMPLATE_STREAM));
        bar.enable_steady_tick(Duration::from_millis(200));
        Some(Arc::new(move |progress: &Progress| show(&bar, progress)))
    }

    /// Shows how many bytes of all are done.
    pub fn show_bytes(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            if bar.length() != Some(total) {
                bar.set_length(total);
                bar.set_style(style(TEMPLATE));
            }
            bar.set_position(done);
        }
    }

    /// Takes the bar off the terminal.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn show(bar: &indicatif::ProgressBar, progress: &Progress) {
    let total = progress.bytes_total();
    if total > 0 && bar.length() != Some(total) {
        bar.set_length(total);
        bar.set_style(style(TEMPLATE));
    }
    bar.set_position(progress.bytes());
    let rows = HumanCount(progress.rows());
    bar.set_message(match progress.rejects() {
        0 => format!("{rows} rows"),
        rejects => format!("{rows} rows, {} rejects", HumanCount(rejects)),
    });
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_templates_are_sound() {
        ProgressStyle::with_template(TEMPLATE).unwrap();
        ProgressStyle::with_template(TEMPLATE_STREAM).unwrap();
    }
}
