// A Rust program that panics in every way that unwinds, and prints the number of calls: "calls NAME COUNT".
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

static DROPPED: AtomicU64 = AtomicU64::new(0);
static UNWOUND_DEEP: AtomicU64 = AtomicU64::new(0);
static UNWOUND_LEAF: AtomicU64 = AtomicU64::new(0);
static RETURNED: AtomicU64 = AtomicU64::new(0);

struct Guard(u64);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::Relaxed);
    }
}

#[inline(never)]
fn unwound_leaf(value: u64) -> u64 {
    UNWOUND_LEAF.fetch_add(1, Ordering::Relaxed);
    if value < 1_000_000 {
        panic!("leaf {}", value % 3);
    }
    value
}

#[inline(never)]
fn unwound_deep(depth: u64, value: u64) -> u64 {
    UNWOUND_DEEP.fetch_add(1, Ordering::Relaxed);
    let guard = Guard(1);
    let result = if depth == 0 {
        unwound_leaf(value)
    } else {
        unwound_deep(depth - 1, value)
    };
    result + guard.0
}

#[inline(never)]
fn returned(value: u64) -> u64 {
    RETURNED.fetch_add(1, Ordering::Relaxed);
    value.wrapping_mul(7)
}

fn catch(depth: u64, value: u64) -> bool {
    panic::catch_unwind(|| unwound_deep(depth, value)).is_err()
}

fn main() {
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut caught = 0;
    for round in 0..200 {
        caught += catch(round % 30, round) as u64;
        caught += panic::catch_unwind(|| {
            let inner = catch(3, round);
            returned(inner as u64);
            panic::resume_unwind(Box::new("again"))
        })
        .is_err() as u64;
    }
    let threads: Vec<_> = (0..8)
        .map(|number| thread::spawn(move || unwound_deep(10, number)))
        .collect();
    let failed = threads.into_iter().filter_map(|t| t.join().err()).count();
    panic::set_hook(quiet);
    println!("caught {} failed {}", caught, failed);
    println!("dropped {}", DROPPED.load(Ordering::Relaxed));
    println!("calls unwound_leaf {}", UNWOUND_LEAF.load(Ordering::Relaxed) + 1);
    println!("calls unwound_deep {}", UNWOUND_DEEP.load(Ordering::Relaxed) + 3);
    println!("calls returned {}", RETURNED.load(Ordering::Relaxed));
    unwound_deep(2, 5); // ends the program
}
