//! `iofleet check`: asks every worker whether a scenario could run, and says what stands in the way.

use std::{fmt::Write as _, io::Write, path::PathBuf};

use clap::Args;
use iofleet_shared::{
    clock,
    ids::NodeIndex,
    limits::{ANSWER_WITHIN, TARGET_CALL_WITHIN},
    transport,
    wire::{Command, Notice},
    work::DatasetDir,
};
use serde::Serialize;

use super::{
    Failure, StoreArg, printed,
    run::{self, Fleet, RunArgs},
    workload::WorkloadArgs,
};
use crate::{
    asking::{AskError, Asking},
    check::{self, Answer, Finding},
    exit::Exit,
    plan::Plan,
    scenario::{Context, Scenario},
    store,
};

/// Schema of the JSON.
const SCHEMA: &str = "iofleet.check/1";

/// Arguments of `iofleet check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The scenario.
    pub scenario: PathBuf,
    /// The fleet, as a host list: `client[01-04]`, `host:port`, `[fd00::1]:7737`, by commas.
    #[arg(long, value_name = "LIST", env = "IOFLEET_WORKERS", conflicts_with = "local")]
    pub workers: Option<String>,
    /// Start a fleet of N workers inside this command instead.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=run::LOCAL_MAX))]
    pub local: Option<u32>,
    /// Folder with the coordinator's keys [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    pub keys: Option<PathBuf>,
    /// Print JSON instead of sentences.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    nodes: usize,
    findings: &'a [Finding],
}

/// Runs it.
///
/// # Errors
/// A scenario that is not valid, keys, faults of this machine.
pub fn run(args: CheckArgs, out: &mut impl Write) -> Result<Exit, Failure> {
    let context = Context { local: args.local.is_some(), workers_flag: args.workers.clone() };
    let scenario = run::load(Some(&args.scenario), &args.workload, &context)?;
    let id = store::campaign_id(clock::wall(), run::random());
    let json = args.json;
    let fleet = Fleet::of(&as_run(args), &scenario, &id)?;
    let count = u32::try_from(fleet.workers.len()).unwrap_or(u32::MAX);
    let plan = Plan::new(&scenario, count).map_err(|error| Failure::new(Exit::Scenario, &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Fault, &error))?;
    let asked = runtime.block_on(ask(&fleet, &scenario, &plan, &id));
    runtime.shutdown_background();
    let answers = asked?;
    let path = scenario.target.path.as_deref().unwrap_or_default();
    let findings = check::findings(&answers, &scenario.fleet, !path.contains("{node}"));
    let text = if json {
        let document = Document { schema: SCHEMA, nodes: answers.len(), findings: &findings };
        serde_json::to_string_pretty(&document)
            .map_err(|error| Failure::new(Exit::Fault, &error))?
    } else {
        sentences(&answers, &findings)
    };
    printed(writeln!(out, "{}", text.trim_end()))?;
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Fleet })
}

fn as_run(args: CheckArgs) -> RunArgs {
    RunArgs {
        scenario: Some(args.scenario),
        workers: args.workers,
        local: args.local,
        keys: args.keys,
        json: None,
        store: StoreArg { store: None },
        binary: false,
        workload: args.workload,
    }
}

async fn ask(
    fleet: &Fleet,
    scenario: &Scenario,
    plan: &Plan,
    id: &str,
) -> Result<Vec<(String, Answer)>, Failure> {
    let fault = |error: &dyn std::error::Error| Failure::new(Exit::Fault, error);
    let endpoint =
        transport::client(fleet.identity(), fleet.is_remote()).map_err(|error| fault(&error))?;
    let mut asking = Asking::connect(&fleet.workers, &endpoint).await.map_err(failure)?;
    let reached = asking.lost().to_vec();
    let answers = questions(&mut asking, fleet, scenario, plan, id).await;
    asking.clean().await;
    let (claimed, inspected) = answers.map_err(failure)?;
    let answers = claimed.into_iter().zip(inspected).zip(reached).zip(&fleet.workers);
    Ok(answers
        .map(|(((claimed, inspected), lost), worker)| {
            let answer = match (lost, claimed, inspected) {
                (Some(why), ..) => Answer::Lost(why),
                (None, Ok(Notice::Claimed(host)), Ok(Notice::Inspected(target))) => {
                    Answer::Ready(Box::new(host), Box::new(target))
                }
                (None, Ok(Notice::Claimed(host)), Err(why)) => Answer::Refused(Box::new(host), why),
                (None, Err(why), _) => Answer::Held(why),
                (None, Ok(other), _) => Answer::Lost(format!("answered {other:?}")),
            };
            (worker.name.clone(), answer)
        })
        .collect())
}

type Answers = Vec<Result<Notice, String>>;

async fn questions(
    asking: &mut Asking,
    fleet: &Fleet,
    scenario: &Scenario,
    plan: &Plan,
    id: &str,
) -> Result<(Answers, Answers), AskError> {
    let claims = asking.claims(id, &run::holder());
    let claimed = asking.ask_each(claims, ANSWER_WITHIN).await?;
    let inspect = |(index, worker)| {
        let path = fleet.path_of(scenario, worker);
        let dir = DatasetDir { path, name: id.to_owned(), campaign: id.to_owned() };
        Command::Inspect(Box::new(plan.target_spec(NodeIndex(index), dir)))
    };
    let inspections = (0_u32..).zip(&fleet.workers).map(inspect).collect();
    let inspected = asking.ask_each(inspections, TARGET_CALL_WITHIN + ANSWER_WITHIN).await?;
    Ok((claimed, inspected))
}

fn failure(error: AskError) -> Failure {
    let exit = match error {
        AskError::Nodes(_) => Exit::Fleet,
        AskError::Interrupted => Exit::Interrupted,
        AskError::Signals(_) => Exit::Fault,
    };
    Failure::new(exit, &error)
}

fn sentences(answers: &[(String, Answer)], findings: &[Finding]) -> String {
    let mut text = String::new();
    if findings.is_empty() {
        let _ = writeln!(text, "Ready: {} nodes could begin.", answers.len());
    }
    for (number, Finding { nodes, what, help }) in (1..).zip(findings) {
        let _ = writeln!(text, "{number}. {}: {what}", nodes.join(", "));
        let _ = writeln!(text, "   {help}");
    }
    text
}
