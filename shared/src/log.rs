//! The log of both binaries: compact lines on standard error, so that standard output stays free
//! for results.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, util::SubscriberInitExt};

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter can't be read.
    #[error(
        "`{filter}` is no log filter: {why}; write a level (error, warn, info, debug, trace, off) \
         or a list such as `info,iofleet_worker=debug`"
    )]
    Filter {
        /// As given.
        filter: String,
        /// What is wrong with it.
        why: String,
    },
    /// The process has a log already.
    #[error("the log was set up twice")]
    Twice,
}

/// Sends the log to standard error from here on.
///
/// # Errors
/// On a filter that can't be read, and when the process has a log already.
pub fn init(filter: &str) -> Result<(), LogError> {
    let parsed = parse(filter)?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .compact()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false);
    // The journal stamps each line itself.
    let set = if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.without_time().finish().try_init()
    } else {
        log.finish().try_init()
    };
    set.map_err(|_| LogError::Twice)
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    let refused = |why: String| LogError::Filter { filter: filter.to_owned(), why };
    for part in filter.split(',').map(str::trim) {
        // A bare word that is no level would be taken as a module's name, and a misspelt level
        // would silence the log.
        if !part.contains(['=', '[']) && !is_level(part) {
            return Err(refused(format!("`{part}` is no level")));
        }
    }
    let joined: String = filter.split_whitespace().collect();
    EnvFilter::try_new(joined).map_err(|error| refused(error.to_string()))
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_lists_are_read() {
        for filter in ["info", "OFF", "warn,iofleet_worker=debug", "info, quinn=error"] {
            assert!(parse(filter).is_ok(), "{filter}");
        }
    }

    #[test]
    fn misspelt_levels_are_named() {
        for (filter, word) in
            [("inof", "inof"), ("", ""), ("info,quin", "quin"), ("quinn=lots", "quinn=lots")]
        {
            let text = parse(filter).unwrap_err().to_string();
            assert!(text.starts_with(&format!("`{filter}` is no log filter")), "{text}");
            assert!(text.contains(word) && text.contains("error, warn, info"), "{text}");
        }
    }
}
