//! Who may touch a thread's account: the thread itself, except while it is inside a call.
//!
//! A thread that never returns from the kernel must not take its figures with it, and must not
//! disturb anything should it return after all. So it lays its account down before each call and
//! takes it up again after it, by one atomic word; while the account lies there whoever watches
//! may take it for good, and the thread finds that out when it returns. A thread that ends leaves
//! its account in the same way. No lock, and nobody ever waits.

use std::{
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The thread works with its account.
const HELD: u64 = 0;
/// The thread has ended.
const ENDED: u64 = u64::MAX - 1;
/// A watcher has the account.
const TAKEN: u64 = u64::MAX;

/// What everybody may see. 128 bytes, so that two threads share no cache line, nor a pair of
/// lines that are fetched together.
#[derive(Debug)]
#[repr(align(128))]
struct Sign {
    /// `HELD`, `ENDED`, `TAKEN`, or else the stamp since which the thread is inside a call.
    word: AtomicU64,
    bytes: AtomicU64,
}

struct Desk<T> {
    sign: Glance,
    account: UnsafeCell<T>,
}

// SAFETY: the account is reached by one thread at a time. While the word is `HELD` only the one
// `Seat` does; out of a stamp or `ENDED` the one watcher whose exchange to `TAKEN` succeeded does, and
// a `Seat` that comes back to `TAKEN` never does again. The exchanges carry acquire and release.
unsafe impl<T: Send> Sync for Desk<T> {}

/// The thread's side. Dropping it, also by a panic, leaves the account to the watcher.
pub struct Seat<T> {
    desk: Arc<Desk<T>>,
}

/// The watcher's side.
pub struct Watch<T> {
    desk: Arc<Desk<T>>,
}

/// A view of a thread from outside, which keeps nothing of its account alive.
#[derive(Debug, Clone)]
pub struct Glance(Arc<Sign>);

/// An account that was taken for good.
pub struct Taken<T> {
    desk: Arc<Desk<T>>,
}

/// The account was taken while the thread was inside a call: it must leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Between two calls, or not begun.
    AtWork,
    /// Inside a call since this stamp.
    InCall(u64),
    /// It has left its account.
    Ended,
    /// Its account was taken.
    Taken,
}

/// A seat for one thread, and a watch over it.
#[must_use]
pub fn seat<T: Send>(account: T) -> (Seat<T>, Watch<T>) {
    let desk = Arc::new(Desk {
        sign: Glance(Arc::new(Sign { word: AtomicU64::new(HELD), bytes: AtomicU64::new(0) })),
        account: UnsafeCell::new(account),
    });
    (Seat { desk: Arc::clone(&desk) }, Watch { desk })
}

impl<T: Send> Seat<T> {
    /// The account.
    #[inline]
    pub fn account(&mut self) -> &mut T {
        // SAFETY: the word is `HELD`: it is except inside `away`, which keeps the seat to itself.
        unsafe { &mut *self.desk.account.get() }
    }

    /// Lays the account down, makes `call`, and takes the account up again. `since` is a stamp
    /// that the call is counted from.
    ///
    /// # Errors
    /// When the account was taken meanwhile.
    #[inline]
    pub fn away<R>(self, since: u64, call: impl FnOnce() -> R) -> Result<(Self, R), Gone> {
        self.sign().word.store(since.clamp(1, ENDED - 1), Ordering::Release);
        let result = call();
        if self.sign().word.swap(HELD, Ordering::AcqRel) == TAKEN {
            self.sign().word.store(TAKEN, Ordering::Relaxed);
            return Err(Gone);
        }
        Ok((self, result))
    }

    /// Shows how many bytes have been moved.
    #[inline]
    pub fn show_bytes(&self, bytes: u64) {
        self.sign().bytes.store(bytes, Ordering::Relaxed);
    }
}

impl<T> Seat<T> {
    #[inline]
    fn sign(&self) -> &Sign {
        &self.desk.sign.0
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        // Whatever the word is, a thread without a seat has ended, unless its account is gone.
        let ended = |word| (word != TAKEN).then_some(ENDED);
        let _ = self.sign().word.fetch_update(Ordering::Release, Ordering::Relaxed, ended);
    }
}

impl Glance {
    /// Where the thread is.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        match self.0.word.load(Ordering::Relaxed) {
            HELD => Whereabouts::AtWork,
            ENDED => Whereabouts::Ended,
            TAKEN => Whereabouts::Taken,
            since => Whereabouts::InCall(since),
        }
    }

    /// Bytes that the thread last showed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl<T: Send> Watch<T> {
    /// Where the thread is.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        self.desk.sign.whereabouts()
    }

    /// The same for others to see.
    #[must_use]
    pub fn glance(&self) -> Glance {
        self.desk.sign.clone()
    }

    /// Takes the account for good, if the thread is still where it was seen, and that is inside a
    /// call or ended.
    #[must_use]
    pub fn take(&self, seen: Whereabouts) -> Option<Taken<T>> {
        let word = match seen {
            Whereabouts::AtWork | Whereabouts::Taken => return None,
            Whereabouts::InCall(since) => since,
            Whereabouts::Ended => ENDED,
        };
        self.desk
            .sign
            .0
            .word
            .compare_exchange(word, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            .ok()
            .map(|_| Taken { desk: Arc::clone(&self.desk) })
    }
}

impl<T> Deref for Taken<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `Taken` is made by the one exchange that set the word to `TAKEN`, so it alone
        // reaches the account from then on.
        unsafe { &*self.desk.account.get() }
    }
}

impl<T> DerefMut for Taken<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
        unsafe { &mut *self.desk.account.get() }
    }
}

impl<T> fmt::Debug for Seat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").finish_non_exhaustive()
    }
}

impl<T: Send> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.whereabouts()).finish()
    }
}

impl<T> fmt::Debug for Taken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn an_account_is_taken_only_from_where_the_thread_was_seen() {
        let (mut seat, watch) = seat(1);
        assert_eq!(watch.whereabouts(), Whereabouts::AtWork);
        assert!(watch.take(Whereabouts::AtWork).is_none());
        *seat.account() += 1;
        let (seat, seen) = seat.away(77, || watch.whereabouts()).unwrap();
        assert_eq!(seen, Whereabouts::InCall(77));
        assert!(watch.take(seen).is_none(), "the thread is back");
        drop(seat);
        assert_eq!(watch.whereabouts(), Whereabouts::Ended);
        assert_eq!(*watch.take(Whereabouts::Ended).unwrap(), 2);
        assert!(watch.take(Whereabouts::Ended).is_none());
        assert_eq!(watch.whereabouts(), Whereabouts::Taken);
    }

    #[test]
    fn a_thread_that_returns_too_late_finds_nothing() {
        let (seat, watch) = seat(5);
        let result = seat.away(9, || watch.take(Whereabouts::InCall(9)).unwrap());
        assert_eq!(result.err(), Some(Gone));
        assert_eq!(watch.whereabouts(), Whereabouts::Taken);
    }

    #[test]
    fn a_panic_leaves_the_account() {
        let (seat, watch) = seat(5);
        let thread = thread::spawn(move || seat.away(3, || panic!("inside the call")).is_ok());
        assert!(thread.join().is_err());
        assert_eq!(*watch.take(Whereabouts::Ended).unwrap(), 5);
    }

    #[test]
    fn every_count_before_the_taking_is_seen() {
        let (mut seat, watch) = seat(0_u64);
        let thread = thread::spawn(move || {
            let mut made = 0_u64;
            loop {
                *seat.account() += 1;
                made += 1;
                match seat.away(made, thread::yield_now) {
                    Ok((back, ())) => seat = back,
                    Err(Gone) => return made,
                }
            }
        });
        let taken = loop {
            if let Some(taken) = watch.take(watch.whereabouts()) {
                break taken;
            }
            thread::yield_now();
        };
        assert_eq!(thread.join().unwrap(), *taken);
    }
}
