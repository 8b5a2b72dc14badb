// For each line of input, panics in threads and deep in calls, and prints what was caught. With an argument, the
// stack overflows at the end, and Rust's runtime reports it.
use std::io::BufRead;
use std::panic::catch_unwind;
use std::thread;

// Hides a value from the optimizer. Debian's rustc has no std::hint::black_box.
fn hide<T>(value: T) -> T {
    let hidden = std::mem::ManuallyDrop::new(value);
    unsafe { std::ptr::read_volatile(&*hidden) }
}

#[inline(never)]
fn divide(a: i32, b: i32) -> i32 {
    a / b
}

#[inline(never)]
fn deep(n: i32) -> i32 {
    if n == 0 {
        return divide(1, n);
    }
    deep(n - 1) + 1
}

#[inline(never)]
fn endless(n: u64) -> u64 {
    let values = [n; 16];
    let values = hide(values);
    endless(n + 1) + values[(n % 16) as usize]
}

fn batch() -> u32 {
    let mut caught = 0;
    for i in 0..50 {
        caught += catch_unwind(|| deep(i)).is_err() as u32;
        caught += catch_unwind(|| [1, 2, 3][hide(i as usize + 3)]).is_err() as u32;
    }
    caught + thread::spawn(|| deep(10)).join().is_err() as u32
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    for _ in std::io::stdin().lock().lines() {
        println!("caught {}", batch());
    }
    if std::env::args().len() > 1 {
        println!("{}", thread::Builder::new().name("endless".into()).spawn(|| endless(0)).unwrap().join().unwrap());
    }
    std::process::exit(3);
}
