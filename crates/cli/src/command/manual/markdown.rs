//! The command line as pages of Markdown, so that what they say of a flag is what the flag is.
//!
//! ```text
//!   coload-load.md:  # coload load, what it does, usage, ## group, ### `--flag <VALUE>`, help, values, default
//! ```

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// Flags without a group stand under this.
const UNGROUPED: &str = "Options";
const ARGUMENTS: &str = "Arguments";

/// Writes `coload.md` and `coload-COMMAND.md` for each command.
pub fn generate_to(mut command: Command, folder: &Path) -> io::Result<()> {
    command.build();
    fs::write(folder.join("coload.md"), overview(&mut command))?;
    for command in command.get_subcommands_mut().filter(|command| is_shown(command)) {
        let name = format!("coload-{}.md", command.get_name());
        fs::write(folder.join(name), page(command))?;
    }
    Ok(())
}

fn is_shown(command: &Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

/// The commands, a line each.
fn overview(command: &mut Command) -> String {
    let mut text = format!("# coload\n\n{}\n\n", about(command));
    text += "| command | what it does |\n|---|---|\n";
    for command in command.get_subcommands().filter(|command| is_shown(command)) {
        let (name, about) = (command.get_name(), command.get_about());
        let about = about.map(plain).unwrap_or_default().replace('|', "\\|");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| [{name}](coload-{name}.md) | {about} |");
    }
    text
}

fn page(command: &mut Command) -> String {
    let mut text = format!("# coload {}\n\n{}\n\n", command.get_name(), about(command));
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(text, "```text\n{usage}\n```\n");
    let shown: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    for group in groups(&shown) {
        let _ = writeln!(text, "## {group}\n");
        for arg in shown.iter().filter(|arg| group_of(arg) == group) {
            text += &entry(arg);
        }
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let examples = examples.strip_prefix("Examples:\n").unwrap_or(&examples);
        let _ = writeln!(text, "## Examples\n\n```text\n{}\n```", examples.trim_end());
    }
    text
}

/// What a command does, in as many words as it has.
fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(plain).unwrap_or_default()
}

fn group_of(arg: &Arg) -> &str {
    match arg.get_help_heading() {
        Some(group) => group,
        None if arg.is_positional() => ARGUMENTS,
        None => UNGROUPED,
    }
}

/// The groups in the order in which they come.
fn groups<'a>(args: &[&'a Arg]) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for arg in args {
        if !groups.contains(&group_of(arg)) {
            groups.push(group_of(arg));
        }
    }
    groups
}

fn entry(arg: &Arg) -> String {
    let mut text = format!("### `{}`\n\n", arg.to_string().trim());
    if let Some(help) = arg.get_long_help().or(arg.get_help()) {
        text += &plain(help);
        text += "\n\n";
    }
    let takes_values = arg.get_action().takes_values();
    for value in
        arg.get_possible_values().iter().filter(|value| takes_values && !value.is_hide_set())
    {
        let help = value.get_help().map(plain).unwrap_or_default();
        let gap = if help.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "- `{}`{gap}{help}", value.get_name());
    }
    if takes_values && !arg.get_possible_values().is_empty() {
        text.push('\n');
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_values && !defaults.is_empty() {
        let _ = writeln!(text, "Default: `{}`\n", defaults.join(" "));
    }
    text
}

/// A help text, without what Markdown would read as something else.
fn plain(text: &StyledStr) -> String {
    let mut plain = String::new();
    for character in text.to_string().chars() {
        match character {
            '<' => plain += "&lt;",
            '*' | '_' | '[' | ']' => plain.extend(['\\', character]),
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// The contents of the site name each page.
    #[test]
    fn every_command_has_a_page_in_the_contents() {
        let folder = tempfile::tempdir().expect("a directory");
        generate_to(Cli::command(), folder.path()).expect("writable");
        let contents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SUMMARY.md");
        let contents = fs::read_to_string(contents).expect("the contents");
        for page in fs::read_dir(folder.path()).expect("pages") {
            let name = page.expect("a page").file_name().into_string().expect("a name");
            assert!(contents.contains(&format!("(reference/{name})")), "{name}");
        }
    }

    #[test]
    fn a_page_tells_every_flag_and_its_values() {
        let folder = tempfile::tempdir().expect("a directory");
        generate_to(Cli::command(), folder.path()).expect("writable");
        let page = fs::read_to_string(folder.path().join("coload-load.md")).expect("a page");
        let load = Cli::command();
        let load = load.find_subcommand("load").expect("load");
        for arg in load.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let entry = match arg.get_long() {
                Some(name) => format!("--{name}"),
                None => format!("### `<{}>", arg.get_value_names().expect("a name")[0]),
            };
            assert!(page.contains(&entry), "{entry}");
        }
        assert!(page.contains("- `lenient`") && page.contains("## Dialect"), "{page}");
        assert!(!page.contains("](") && page.contains("```text\ncoload load"), "{page}");
    }
}
