//! The shell at a terminal, which Python's `pty` plays.

use std::path::Path;
use std::process::Command;

use crate::drivers::passes;
use crate::serve::Server;
use crate::support::Sandbox;

fn people() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("people.csv", "name,born\nAda,1815-12-10\nAlan,1912-06-23\n");
    sandbox.run(&["load", "people.csv", "--into", "store"]).ok();
    sandbox
}

fn plays(sandbox: &Sandbox, store: &str, scenario: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/shell.py");
    passes(
        Command::new("python3")
            .arg(here)
            .args([env!("CARGO_BIN_EXE_coload"), store, scenario])
            .env_remove("COLOAD_STORE")
            .env_remove("NO_COLOR")
            .current_dir(sandbox.path("")),
    );
}

#[test]
fn commands_of_the_shell_do_what_help_says() {
    plays(&people(), "store", "words");
}

#[test]
fn keys_complete_search_and_paste() {
    plays(&people(), "store", "keys");
}

#[test]
fn words_have_colours_unless_they_are_not_wanted() {
    plays(&people(), "store", "colours");
}

/// Ctrl-C ended the shell.
#[test]
fn ctrl_c_cancels_the_statement_and_not_the_shell() {
    plays(&people(), "store", "cancels");
}

/// The server went on, and the shell ended.
#[test]
fn ctrl_c_cancels_a_statement_at_a_server() {
    let sandbox = people();
    let server = Server::start(&sandbox, &[]);
    plays(&sandbox, &server.url(), "cancels");
    // Nothing runs there any more.
    assert!(server.rests(), "the server still works");
}

#[test]
fn tables_fit_the_terminal_and_pagers_show_the_rest() {
    plays(&people(), "store", "tables");
}

#[test]
fn a_statement_is_edited_and_run_again() {
    plays(&people(), "store", "edits");
}
