//! What blocks hold.
