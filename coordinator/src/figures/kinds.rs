//! Figures of one kind of operation among others: in the window and over the span of all.

use serde::{Deserialize, Serialize};

use super::{Figures, Headline, Payload};

/// The figures of one quantity that a single kind of operation has, per second. A thread without
/// operations of the kind adds nothing to them. None: not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Payload in the common window of all kinds over its length.
    pub common: Option<f64>,
    /// All payload over (last end − first begin) of all kinds.
    pub span: Option<f64>,
}

impl Rates {
    /// The one that stands for the point.
    #[must_use]
    pub fn of(&self, headline: Headline) -> Option<f64> {
        match headline {
            Headline::Common => self.common,
            Headline::Span => self.span,
        }
    }
}

impl Figures {
    /// Bytes and operations per second of one kind: `in_window` is what of it lies in the common
    /// window, `total` all of its measured phase.
    #[must_use]
    pub fn of_kind(&self, in_window: Payload, total: Payload) -> (Rates, Rates) {
        let common = self.window.map(|window| in_window.per(window.length_ns()));
        let span = self.span_ns().map(|ns| total.per(ns));
        let rates =
            |part: fn(Payload) -> f64| Rates { common: common.map(part), span: span.map(part) };
        (rates(|payload| payload.bytes), rates(|payload| payload.ops))
    }
}
