use std::process::exit;
#[inline(never)]
#[no_mangle]
fn greet(name: &str, count: u16, share: f64) -> i64 {
    println!("{} {} {}", name, count, share);
    count as i64 - 9
}
#[inline(never)]
#[no_mangle]
fn sum(numbers: &[u32], factor: u32) -> u32 {
    println!("{}", numbers.len());
    numbers.iter().sum::<u32>() * factor
}
fn main() {
    let numbers = vec![1, 2, 3];
    sum(&numbers[1..], 2);
    let name = String::from("Ferris the crab");
    exit((greet(&name[..6], 9, 0.25) + 0) as i32);
}
