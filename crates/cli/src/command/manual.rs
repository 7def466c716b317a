//! `coload completions` and `coload man`: what the command line says of itself, for shells and for `man`.

mod markdown;

use std::path::Path;

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use coload::Error;

use crate::args::{Cli, ManualForm};
use crate::output::{Done, print};

/// Prints the completions of a shell.
///
/// # Errors
/// `OutputClosed` when nobody reads them, `Failed` when they cannot be written.
pub fn completions(shell: Shell) -> Done {
    let mut command = Cli::command();
    let mut text = Vec::new();
    generate(shell, &mut command, "coload", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Writes a page for the command and for each of its commands, and names them.
///
/// # Errors
/// `Failed` when they cannot be written.
pub fn pages(folder: &Path, form: ManualForm) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("make", folder, &e))?;
    let (written, how_to_read) = match form {
        ManualForm::Roff => {
            (clap_mangen::generate_to(Cli::command(), folder), "; read them with man -l")
        }
        ManualForm::Markdown => (markdown::generate_to(Cli::command(), folder), ""),
    };
    written.map_err(|e| Error::io("write pages of the manual into", folder, &e))?;
    print(&format!("the pages are in {}{how_to_read}\n", folder.display()))
}
