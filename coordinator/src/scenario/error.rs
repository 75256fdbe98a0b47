//! What is wrong with a scenario, and where: at file, line and key, or at an argument.

use std::{fmt, ops::Range, sync::Arc};

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// A scenario that can't be run. All faults that could be found in one go.
#[derive(Debug, Clone)]
pub struct ScenarioError {
    first: Box<Problem>,
    others: Vec<Problem>,
}

impl ScenarioError {
    /// One line for each fault: `ramp.toml:7: workload.block: …`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        std::iter::once(&*self.first).chain(&self.others).map(ToString::to_string).collect()
    }

    pub(super) fn one(problem: Problem) -> Self {
        Self { first: Box::new(problem), others: Vec::new() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)
    }
}

impl std::error::Error for ScenarioError {}

impl Diagnostic for ScenarioError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.first.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.first.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.first.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.others.is_empty() {
            return None;
        }
        Some(Box::new(self.others.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// These bytes of the file.
    File(Range<usize>),
    /// An argument or a variable of the environment, as people wrote it.
    Argument(String),
    /// Nobody wrote it.
    Default,
}

impl Origin {
    /// Another place for what nobody wrote.
    pub(super) fn or<'a>(&'a self, other: &'a Self) -> &'a Self {
        if *self == Self::Default { other } else { self }
    }
}

/// One fault.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    text: String,
    help: Option<String>,
    labels: Vec<(Range<usize>, String)>,
    argument: Option<String>,
    key: Option<String>,
    source: Option<Arc<NamedSource<String>>>,
}

/// Longest line of a file that is shown around a fault.
const LINE_SHOWN_MAX: usize = 400;

impl Problem {
    /// The text names file and line; around it the source is shown where people can read it.
    fn shows_source(&self) -> bool {
        let short = |text: &String| text.lines().all(|line| line.len() <= LINE_SHOWN_MAX);
        !self.labels.is_empty() && self.source.as_deref().is_some_and(|file| short(file.inner()))
    }

    /// A fault that stands at no place: something is missing.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            help: None,
            labels: Vec::new(),
            argument: None,
            key: None,
            source: None,
        }
    }

    /// A fault of the value of a key (`workload.block`).
    pub(super) fn at(origin: &Origin, key: impl Into<String>, text: impl Into<String>) -> Self {
        let problem = Self { key: Some(key.into()), ..Self::new(text) };
        problem.and(origin, "here")
    }

    /// Another place that has to do with it.
    pub(super) fn and(mut self, origin: &Origin, label: impl Into<String>) -> Self {
        match origin {
            Origin::File(span) => {
                if !self.labels.iter().any(|(known, _)| known == span) {
                    self.labels.push((span.clone(), label.into()));
                }
            }
            Origin::Argument(argument) => {
                if self.argument.is_none() {
                    self.argument = Some(argument.clone());
                }
            }
            Origin::Default => {}
        }
        self
    }

    /// What would be right.
    pub(super) fn right(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn line(&self) -> Option<usize> {
        let (span, _) = self.labels.first()?;
        let text = self.source.as_ref()?.inner();
        Some(text.get(..span.start)?.matches('\n').count() + 1)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(argument) = &self.argument {
            write!(f, "{argument}: ")?;
        } else if let Some(source) = &self.source {
            write!(f, "{}", source.name())?;
            if let Some(line) = self.line() {
                write!(f, ":{line}")?;
            }
            write!(f, ": ")?;
        }
        match &self.key {
            // The argument names its key.
            Some(key) if self.argument.is_none() => write!(f, "{key}: {}", self.text),
            _ => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        if !self.shows_source() {
            return None;
        }
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if !self.shows_source() {
            return None;
        }
        Some(Box::new(
            self.labels
                .iter()
                .map(|(span, label)| LabeledSpan::new_with_span(Some(label.clone()), span.clone())),
        ))
    }
}

/// Gathers faults, so that a file's are told in one go.
#[derive(Debug)]
pub(super) struct Problems {
    source: Arc<NamedSource<String>>,
    found: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let source = NamedSource::new(name, text.to_owned()).with_language("toml");
        Self { source: Arc::new(source), found: Vec::new() }
    }

    /// Takes a fault, unless the same was taken before.
    pub(super) fn push(&mut self, problem: Problem) {
        let problem = Problem { source: Some(Arc::clone(&self.source)), ..problem };
        let same = |known: &Problem| known.text == problem.text && known.labels == problem.labels;
        if !self.found.iter().any(same) {
            self.found.push(problem);
        }
    }

    /// Whether nothing was found as yet.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Itself, if nothing was found.
    pub(super) fn none(self) -> Result<Self, ScenarioError> {
        let Self { source, found } = self;
        let mut found = found.into_iter();
        match found.next() {
            None => Ok(Self { source, found: Vec::new() }),
            Some(first) => Err(ScenarioError { first: Box::new(first), others: found.collect() }),
        }
    }
}
