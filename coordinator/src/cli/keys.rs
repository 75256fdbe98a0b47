//! `iofleet keys`: makes and shows the certificates of a fleet.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Subcommand;
use iofleet_shared::clock;

use super::{Failure, keys_dir, printed};
use crate::{
    exit::Exit,
    keys::{self, KeyError, KeyFacts, Validity},
};

/// What to do with keys.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeysCommand {
    /// Make the authority, coordinator and worker keys of a new fleet.
    Init {
        /// Directory for the six files; it is made if need be, and files are never overwritten
        /// [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
        #[arg(long = "keys", value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Show the certificates of a directory, and whether they can be used.
    Show {
        /// Directory with the files [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
        #[arg(long = "keys", value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Does it, and says what was done.
///
/// # Errors
/// As [`keys::init`] and [`keys::show`], and when nothing can be written to `out`.
pub fn run(command: &KeysCommand, out: &mut dyn Write) -> Result<Exit, Failure> {
    let fault = |error: KeyError| Failure::new(Exit::Fault, &error);
    match command {
        KeysCommand::Init { dir } => {
            let dir = keys_dir(dir.as_ref())?;
            let files = keys::init(&dir, &Validity::at(clock::wall())).map_err(fault)?;
            printed(say_made(&dir, &files, out))
        }
        KeysCommand::Show { dir } => {
            let facts = keys::show(&keys_dir(dir.as_ref())?).map_err(fault)?;
            printed(facts.iter().try_for_each(|facts| say_facts(facts, out)))
        }
    }
}

fn say_made(dir: &Path, files: &[PathBuf], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Made the keys of a new fleet in {}:", dir.display())?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        writeln!(out, "  {name}")?;
    }
    writeln!(
        out,
        "\n\
         On each node, copy authority.pem, worker.pem and worker.key to /etc/iofleet/keys,\n\
         readable by the worker's user alone (mode 0600).\n\
         On this machine, authority.pem, coordinator.pem and coordinator.key stay where they are.\n\
         authority.key can sign keys for anyone: keep it offline. No command needs it again.\n\
         The certificates are valid for two years; `iofleet keys show` tells the dates."
    )
}

fn say_facts(facts: &KeyFacts, out: &mut dyn Write) -> io::Result<()> {
    let KeyFacts { path, subject, role, not_before, not_after, fingerprint, problem } = facts;
    writeln!(out, "{}", path.display())?;
    if !fingerprint.is_empty() {
        writeln!(out, "  subject  {subject}")?;
        writeln!(out, "  role     {role}")?;
        writeln!(out, "  valid    {} to {}", date(*not_before), date(*not_after))?;
        writeln!(out, "  SHA-256  {fingerprint}")?;
    }
    match problem {
        None => writeln!(out, "  usable   yes"),
        Some(problem) => writeln!(out, "  usable   no: {problem}"),
    }
}

/// RFC 3339, UTC.
fn date(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| "?".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: KeysCommand,
    }

    fn said(verb: &str, dir: &Path) -> Result<String, String> {
        let line = Line::try_parse_from(["keys", verb, "--keys", dir.to_str().unwrap()]).unwrap();
        let mut out = Vec::new();
        run(&line.command, &mut out).map_err(|failure| failure.text)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn init_says_what_to_copy_where_and_show_finds_it_good() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("keys");
        let text = said("init", &dir).unwrap();
        for word in ["worker.key", "/etc/iofleet/keys", "authority.key", "offline"] {
            assert!(text.contains(word), "{text}");
        }
        let text = said("show", &dir).unwrap();
        assert_eq!(text.matches("usable   yes").count(), 3, "{text}");
        assert!(text.contains("role     coordinator") && text.contains("T"), "{text}");
        let text = said("init", &dir).unwrap_err();
        assert!(text.contains("never overwritten"), "{text}");
    }

    #[test]
    fn show_says_what_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("worker.pem"), "nothing").unwrap();
        let text = said("show", dir.path()).unwrap();
        assert!(text.contains("worker.pem") && text.contains("usable   no: it can't be read"));
    }
}
