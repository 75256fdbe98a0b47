//! Copies that outlive SIGBUS: a load from or a store to a mapping that the kernel can't serve
//! (the file was cut off, a page could not be read or allocated) comes back as an error.
//!
//! The technique of the kernel's own exception tables. The copy is a few instructions written by
//! hand, whose addresses the process-wide handler knows: on a fault at one of them it moves the
//! thread's program counter to the label behind them, where the routine returns what it has not
//! moved. Nothing is unwound and nothing is kept per thread. All other SIGBUS go to the handler
//! that was there before, or do what they would have done without one.

use std::{
    cmp, ffi, io, mem, ptr,
    sync::{OnceLock, PoisonError},
};

/// Proof that the handler is installed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard(());

/// A copy met a page that the kernel could not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Bytes that were not copied, at least 1; on some processors up to 63 of them were.
    pub(crate) left: usize,
}

/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

impl Guard {
    /// Installs the handler of the process, once; SIGBUS must not be blocked in threads that copy.
    ///
    /// # Errors
    /// `Unsupported` on processors that the copy was not written for; what `sigaction` says.
    pub(crate) fn install() -> io::Result<Self> {
        static INSTALLING: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
        if !SUPPORTED {
            let text = "memory mapped I/O is not supported on this processor: only on x86_64 and \
                        aarch64 can a worker outlive a failed access";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut installed = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if !*installed {
            // What was there is kept before the handler can need it.
            BEFORE.get_or_init(|| action_of(None).unwrap_or_else(|_| default_action()));
            let mut action = default_action();
            action.sa_sigaction = handle as *const () as usize;
            // On the alternate stack, since the handler before may be the one of stack overflows.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            action_of(Some(&action))?;
            *installed = true;
        }
        Ok(Self(()))
    }

    /// Copies `length` bytes.
    ///
    /// # Errors
    /// When SIGBUS stopped it.
    ///
    /// # Safety
    /// `from` must be mapped for reading and `to` for writing, each `length` bytes long; they must
    /// not overlap; no reference may be in use to `to`, nor an exclusive one to `from`. Whether the
    /// kernel can serve the pages does not matter, nor whether others change them meanwhile.
    #[inline]
    pub(crate) unsafe fn copy(
        self,
        to: *mut u8,
        from: *const u8,
        length: usize,
    ) -> Result<(), Fault> {
        // SAFETY: as the caller promises; `self` says that faults are caught.
        let left = unsafe { routine::iofleet_guarded_copy(to, from, length) };
        if left == 0 { Ok(()) } else { Err(Fault { left }) }
    }
}

/// Sets what SIGBUS does, where given, and says what it did before.
fn action_of(new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = default_action();
    // SAFETY: both are valid; `handle` does only what a signal handler may do.
    match unsafe { libc::sigaction(libc::SIGBUS, new.map_or(ptr::null(), ptr::from_ref), &mut old) }
    {
        0 => Ok(old),
        _ => Err(io::Error::last_os_error()),
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: zeros are a value of it: the default action, no flags, an empty mask.
    unsafe { mem::zeroed() }
}

/// The handler: a jump behind the copy, or what was there before.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut ffi::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes both, valid until the handler returns.
    let code = unsafe { (*info).si_code };
    let context_of: *mut libc::ucontext_t = context.cast();
    // Codes up to BUS_MCEERR_AR are of an access of this very thread; others were sent.
    let access = (1..=4).contains(&code);
    // SAFETY: as above.
    if access && unsafe { routine::leave(context_of) } {
        return;
    }
    match BEFORE.get() {
        Some(before) if before.sa_sigaction == libc::SIG_IGN && !access => {}
        Some(before) if before.sa_sigaction > cmp::max(libc::SIG_DFL, libc::SIG_IGN) => {
            // SAFETY: it was installed as a handler of this signal with these flags.
            unsafe { chain(before, signal, info, context) }
        }
        _ => {
            // The access is made again and kills; what was sent has to be sent again.
            let _ = action_of(Some(&default_action()));
            if !access {
                // SAFETY: has no preconditions, and may be called in a handler.
                unsafe { libc::raise(signal) };
            }
        }
    }
}

/// # Safety
/// `before` must hold a handler, and the others be what the kernel passed.
unsafe fn chain(
    before: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut ffi::c_void,
) {
    if before.sa_flags & libc::SA_SIGINFO != 0 {
        type WithInfo = extern "C" fn(i32, *mut libc::siginfo_t, *mut ffi::c_void);
        // SAFETY: the flag says that this is its type.
        let handler = unsafe { mem::transmute::<usize, WithInfo>(before.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag this is its type.
        let handler = unsafe { mem::transmute::<usize, extern "C" fn(i32)>(before.sa_sigaction) };
        handler(signal);
    }
}

/// Whether there is a copy for this processor.
const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

// The string move is as fast as memcpy for blocks on all processors since 2013, can be stopped
// anywhere, and leaves in rcx what is left.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.iofleet_guarded_copy,\"ax\",@progbits",
    ".p2align 4",
    ".globl iofleet_guarded_copy",
    ".hidden iofleet_guarded_copy",
    ".type iofleet_guarded_copy,@function",
    "iofleet_guarded_copy:",
    ".cfi_startproc",
    "mov rcx, rdx",
    ".globl iofleet_guarded_first",
    ".hidden iofleet_guarded_first",
    "iofleet_guarded_first:",
    "rep movsb",
    ".globl iofleet_guarded_behind",
    ".hidden iofleet_guarded_behind",
    "iofleet_guarded_behind:",
    "mov rax, rcx",
    "ret",
    ".cfi_endproc",
    ".size iofleet_guarded_copy, .-iofleet_guarded_copy",
    ".popsection",
);

// 64 bytes a turn, then one by one; x2 holds what is left.
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.iofleet_guarded_copy,\"ax\",%progbits",
    ".p2align 4",
    ".globl iofleet_guarded_copy",
    ".hidden iofleet_guarded_copy",
    ".type iofleet_guarded_copy,%function",
    "iofleet_guarded_copy:",
    ".cfi_startproc",
    ".globl iofleet_guarded_first",
    ".hidden iofleet_guarded_first",
    "iofleet_guarded_first:",
    "cmp x2, #64",
    "b.lo 3f",
    "2:",
    "ldp q0, q1, [x1]",
    "ldp q2, q3, [x1, #32]",
    "stp q0, q1, [x0]",
    "stp q2, q3, [x0, #32]",
    "add x1, x1, #64",
    "add x0, x0, #64",
    "sub x2, x2, #64",
    "cmp x2, #64",
    "b.hs 2b",
    "3:",
    "cbz x2, 4f",
    "ldrb w3, [x1]",
    "strb w3, [x0]",
    "add x1, x1, #1",
    "add x0, x0, #1",
    "sub x2, x2, #1",
    "b 3b",
    ".globl iofleet_guarded_behind",
    ".hidden iofleet_guarded_behind",
    "iofleet_guarded_behind:",
    "4:",
    "mov x0, x2",
    "ret",
    ".cfi_endproc",
    ".size iofleet_guarded_copy, .-iofleet_guarded_copy",
    ".popsection",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod routine {
    unsafe extern "C" {
        /// Returns the number of bytes that were not copied.
        pub(super) fn iofleet_guarded_copy(to: *mut u8, from: *const u8, length: usize) -> usize;
        /// First instruction that may fault.
        static iofleet_guarded_first: u8;
        /// The one behind the last that may.
        static iofleet_guarded_behind: u8;
    }

    /// Moves the thread behind the copy if that is where it was; says whether it was.
    ///
    /// # Safety
    /// `context` must be what the kernel passed to a handler.
    pub(super) unsafe fn leave(context: *mut libc::ucontext_t) -> bool {
        let first = (&raw const iofleet_guarded_first).addr() as u64;
        let behind = (&raw const iofleet_guarded_behind).addr() as u64;
        // SAFETY: as the caller promises.
        let registers = unsafe { &mut (*context).uc_mcontext };
        let counter = program_counter(registers);
        let inside = (first..behind).contains(counter);
        if inside {
            *counter = behind;
        }
        inside
    }

    #[cfg(target_arch = "x86_64")]
    fn program_counter(registers: &mut libc::mcontext_t) -> &mut u64 {
        let register = &mut registers.gregs[libc::REG_RIP as usize];
        // SAFETY: the same size and alignment, and all values are values of both.
        unsafe { &mut *std::ptr::from_mut(register).cast::<u64>() }
    }

    #[cfg(target_arch = "aarch64")]
    fn program_counter(registers: &mut libc::mcontext_t) -> &mut u64 {
        &mut registers.pc
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod routine {
    /// Never called: there is no [`super::Guard`].
    pub(super) unsafe fn iofleet_guarded_copy(_: *mut u8, _: *const u8, length: usize) -> usize {
        length
    }

    /// Never called.
    pub(super) unsafe fn leave(_: *mut libc::ucontext_t) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn copies_exactly(bytes in proptest::collection::vec(0_u8.., 0..700), skip in 0..64_usize) {
            let guard = Guard::install().unwrap();
            let from = &bytes[skip.min(bytes.len())..];
            let mut to = vec![0xaa; from.len() + 2];
            // SAFETY: two vectors, one of which is longer than the other.
            let copied =
                unsafe { guard.copy(to.as_mut_ptr().wrapping_add(1), from.as_ptr(), from.len()) };
            proptest::prop_assert_eq!(copied, Ok(()));
            proptest::prop_assert_eq!(&to[1..=from.len()], from);
            proptest::prop_assert_eq!((to[0], to[from.len() + 1]), (0xaa, 0xaa));
        }
    }
}
