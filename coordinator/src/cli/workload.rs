//! The flags that change a scenario: `--set` and a flag for each key of the table that has one.

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind,
    parser::ValueSource,
};

use crate::scenario::{KEYS, Key, Kind, Override, Place};

/// What the command line and the environment change in a scenario, in the order in which it holds:
/// variables of the environment, then arguments as they were written.
///
/// In a derived command: `#[command(flatten)] workload: WorkloadArgs`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkloadArgs {
    /// The changes; later ones win.
    pub overrides: Vec<Override>,
}

impl Args for WorkloadArgs {
    fn augment_args(command: Command) -> Command {
        let set = Arg::new(SET)
            .long(SET)
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .help_heading(HEADING)
            .help(
                "Change one place of the scenario: workload.KEY, sweep.KEY (a list by commas), \
                 stage.NAME.KEY, fleet.KEY or target.KEY; the last wins",
            );
        let flags = KEYS.iter().filter(|key| key.flag).map(argument);
        command.arg(set).args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkloadArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut environment = Vec::new();
        let mut written: Vec<(usize, Override)> = Vec::new();
        for key in KEYS.iter().filter(|key| key.flag) {
            let values = matches.get_many::<String>(key.flag_name()).into_iter().flatten();
            if matches.value_source(key.flag_name()) == Some(ValueSource::EnvVariable) {
                environment.extend(values.map(|value| Override::environment(key, value)));
            } else {
                let places = matches.indices_of(key.flag_name()).into_iter().flatten();
                written.extend(places.zip(values.map(|value| Override::flag(key, value))));
            }
        }
        let sets = matches.get_many::<String>(SET).into_iter().flatten();
        for (place, argument) in matches.indices_of(SET).into_iter().flatten().zip(sets) {
            let change = Override::set(argument)
                .map_err(|error| Error::raw(ErrorKind::ValueValidation, format!("{error}\n")))?;
            written.push((place, change));
        }
        written.sort_by_key(|(place, _)| *place);
        environment.extend(written.into_iter().map(|(_, change)| change));
        Ok(Self { overrides: environment })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

const SET: &str = "set";
const HEADING: &str = "Changes to the scenario";

fn argument(key: &'static Key) -> Arg {
    let legal = match key.place {
        Place::Workload => {
            let by =
                if matches!(key.kind, Kind::Mix | Kind::Numbers) { "semicolons" } else { "commas" };
            format!("{}; by {by}: swept over", key.legal())
        }
        Place::Top | Place::Fleet | Place::Target | Place::Sweep | Place::Stage => key.legal(),
    };
    let default = key.default.unwrap_or(key.otherwise);
    let help = format!("{} [{legal}; default: {default}]", key.help);
    let argument = Arg::new(key.flag_name())
        .long(key.flag_name())
        .env(key.variable())
        .hide_env(true)
        .value_name(value_name(key))
        .action(ArgAction::Append)
        .help_heading(HEADING)
        .help(help);
    if key.kind == Kind::Flag && key.default == Some("false") {
        // A switch. Its value needs a `=`, so that it never takes the scenario for one.
        return argument.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    argument
}

fn value_name(key: &Key) -> &'static str {
    match key.kind {
        Kind::Count(..) | Kind::Integer => "N",
        Kind::Decimal(..) => "X",
        Kind::Sizes(..) => "SIZE",
        Kind::Time(..) => "TIME",
        Kind::Rate | Kind::Offered => "RATE",
        Kind::Flag => "BOOL",
        Kind::Choice(_) => "WORD",
        Kind::Mix => "MIX",
        Kind::Numbers => "LIST",
        Kind::Path => "PATH",
        Kind::Paths => "PATHS",
        Kind::Percent => "SHARE",
        Kind::Speeds => "RATES",
        Kind::Requirements => "DEMANDS",
        Kind::StageName | Kind::Text | Kind::Hosts => "TEXT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(arguments: &[&str]) -> Result<Vec<Override>, Error> {
        let command = WorkloadArgs::augment_args(Command::new("run").arg(Arg::new("scenario")));
        let matches = command.try_get_matches_from(std::iter::once(&"run").chain(arguments))?;
        WorkloadArgs::from_arg_matches(&matches).map(|args| args.overrides)
    }

    fn shown(arguments: &[&str]) -> Vec<String> {
        overrides(arguments).unwrap().iter().map(Override::argument).collect()
    }

    #[test]
    fn the_order_of_the_command_line_is_kept() {
        assert_eq!(
            shown(&[
                "--threads",
                "1,2",
                "--set",
                "sweep.threads=4",
                "file.toml",
                "--block=4KiB",
                "--threads",
                "8",
                "--set",
                "workload.seed=3",
            ]),
            [
                "--threads 1,2",
                "--set sweep.threads=4",
                "--block 4KiB",
                "--threads 8",
                "--set workload.seed=3",
            ]
        );
    }

    #[test]
    fn every_flag_of_the_table_is_taken() {
        for key in KEYS.iter().filter(|key| key.flag) {
            let flag = format!("--{}=1", key.flag_name());
            assert_eq!(overrides(&[&flag]).unwrap(), [Override::flag(key, "1")]);
        }
        assert!(overrides(&["--op", "write"]).is_err());
    }

    #[test]
    fn a_switch_never_swallows_the_scenario() {
        assert_eq!(shown(&["--keep", "file.toml"]), ["--keep true"]);
        assert_eq!(shown(&["--keep=false", "file.toml"]), ["--keep false"]);
        assert_eq!(shown(&["--direct", "false", "file.toml"]), ["--direct false"]);
    }

    #[test]
    fn a_set_without_a_value_is_refused() {
        let error = overrides(&["--set", "workload.block"]).unwrap_err();
        assert!(error.to_string().contains("write KEY=VALUE"), "{error}");
    }
}
