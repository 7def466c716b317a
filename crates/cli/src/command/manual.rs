//! `coload completions` and `coload man`: what the command line says of itself, for shells and for `man`.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use coload::Error;

use crate::args::Cli;
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
pub fn pages(folder: &Path) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("make", folder, &e))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(|e| Error::io("write pages of the manual into", folder, &e))?;
    print(&format!("the pages are in {}; read them with man -l\n", folder.display()))
}
