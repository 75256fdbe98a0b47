//! `iofleet list`: what the results store holds.

use std::io::Write;

use comfy_table::{Table, presets};

use super::{Failure, StoreArg, printed};
use crate::{
    exit::Exit,
    store::{CampaignLine, Store, StoreError},
};

/// Which store.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    store: StoreArg,
}

/// Prints a line for each campaign, newest first.
///
/// # Errors
/// When there is a store that can't be read, or nothing can be printed.
pub fn run(args: &ListArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let path = args.store.path()?;
    let store = Store::open_existing(&path).map_err(|error| store_failure(&error))?;
    let lines = store
        .map(|store| store.list())
        .transpose()
        .map_err(|error| store_failure(&error))?
        .unwrap_or_default();
    let text = if lines.is_empty() {
        format!("No campaigns yet in {}: `iofleet run` makes the first.\n", path.display())
    } else {
        table(&lines)
    };
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

fn table(lines: &[CampaignLine]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["campaign", "started", "name", "status", "points", "best GB/s"]);
    for CampaignLine { id, started, name, status, points, best } in lines {
        let best = best.map_or_else(|| "-".to_owned(), |best| format!("{:.3}", best / 1e9));
        table.add_row([id, started, name, status, &points.to_string(), &best]);
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim());
        text.push('\n');
    }
    text
}

/// How an error of the store ends a command: an id that is not there is the user's.
pub(super) fn store_failure(error: &StoreError) -> Failure {
    let exit = match error {
        StoreError::Empty { .. } | StoreError::Unknown { .. } | StoreError::Ambiguous { .. } => {
            Exit::Usage
        }
        StoreError::NoHome(_)
        | StoreError::Folder { .. }
        | StoreError::NoFolder { .. }
        | StoreError::Newer { .. }
        | StoreError::Locked { .. }
        | StoreError::Sql { .. }
        | StoreError::Document { .. }
        | StoreError::Blob { .. } => Exit::Fault,
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::ErrorKind, path::Path};

    use super::*;
    use crate::{cli::show, record::example};

    fn arg(path: &Path) -> StoreArg {
        StoreArg { store: Some(path.to_owned()) }
    }

    fn listed(path: &Path) -> String {
        let mut out = Vec::new();
        assert_eq!(run(&ListArgs { store: arg(path) }, &mut out).unwrap(), Exit::Done);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_for_each_campaign() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        let mut record = example::campaign();
        store.begin(&record).unwrap();
        store.add_point(&record.campaign.id, &record.points[0], &[]).unwrap();
        record.campaign.id = "20261202-000000-0000".to_owned();
        store.begin(&record).unwrap();
        let words: Vec<Vec<String>> = listed(&path)
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(
            words,
            [
                vec!["campaign", "started", "name", "status", "points", "best", "GB/s"],
                vec!["20261202-000000-0000", "2026-12-01T15:30:12Z", "ramp", "partial", "0", "-"],
                vec![
                    "20261201-153012-4f7a",
                    "2026-12-01T15:30:12Z",
                    "ramp",
                    "partial",
                    "1",
                    "1.573"
                ],
            ]
        );
    }

    #[test]
    fn without_a_store_it_says_so_and_makes_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let text = listed(&path);
        assert!(text.starts_with("No campaigns yet in /"), "{text}");
        let failure = show::run(&show::of("last", true, arg(&path)), &mut Vec::new()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.text.contains("holds no campaign yet"), "{}", failure.text);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert_eq!(printed(Err(ErrorKind::BrokenPipe.into())).unwrap(), Exit::Done);
        assert_eq!(printed(Err(ErrorKind::StorageFull.into())).unwrap_err().exit, Exit::Fault);
    }
}
