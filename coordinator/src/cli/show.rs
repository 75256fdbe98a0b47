//! `iofleet show`: a stored campaign again, as it was printed or as JSON.

use std::io::Write;

use super::{Failure, StoreArg, list::store_failure, printed};
use crate::{
    exit::Exit,
    json, report,
    store::{Store, StoreError},
};

/// Which campaign, and how.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Its id, a beginning of it that no other has, or `last`.
    #[arg(value_name = "CAMPAIGN", default_value = "last")]
    campaign: String,
    /// Print the record as JSON and nothing else.
    #[arg(long, conflicts_with = "binary")]
    json: bool,
    /// GiB/s and MiB instead of GB/s and MB.
    #[arg(long)]
    binary: bool,
    #[command(flatten)]
    store: StoreArg,
}

/// Prints a campaign.
///
/// # Errors
/// When there is none such, it can't be read, or nothing can be printed.
pub fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let path = args.store.path()?;
    let record = Store::open_existing(&path)
        .and_then(|store| store.ok_or(StoreError::Empty { path }))
        .and_then(|store| store.load(&args.campaign))
        .map_err(|error| store_failure(&error))?;
    let text = if args.json {
        json::to_string(&record).map_err(|error| Failure::new(Exit::Fault, &error))?
    } else {
        let (table, summary) =
            (report::table(&record, args.binary), report::summary(&record, args.binary));
        format!("{}\n\n{}\n", table.trim_end(), summary.trim_end())
    };
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

#[cfg(test)]
pub(super) fn of(campaign: &str, json: bool, store: StoreArg) -> ShowArgs {
    ShowArgs { campaign: campaign.to_owned(), json, binary: false, store }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn json_is_the_record_and_the_rest_is_for_people() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let record = example::campaign();
        let mut store = Store::open(&path).unwrap();
        store.begin(&record).unwrap();
        for point in &record.points {
            store.add_point(&record.campaign.id, point, &[]).unwrap();
        }
        let shown = |campaign, json| {
            let mut out = Vec::new();
            let store = StoreArg { store: Some(path.clone()) };
            run(&of(campaign, json, store), &mut out).map(|exit| {
                assert_eq!(exit, Exit::Done);
                String::from_utf8(out).unwrap()
            })
        };
        assert_eq!(shown("last", true).unwrap(), json::to_string(&record).unwrap());
        let text = shown("2026", false).unwrap();
        let (table, summary) = (report::table(&record, false), report::summary(&record, false));
        let (first, second) = text.split_once(table.trim_end()).unwrap();
        assert!(first.is_empty() && second.contains(summary.trim_end()), "{text}");
        assert_eq!(shown("x", true).unwrap_err().exit, Exit::Usage);
    }
}
