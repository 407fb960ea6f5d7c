use std::collections::{BTreeMap, HashMap};
trait T {
    fn f(&self, n: u64) -> Result<u64, String>;
}
struct A(u64);
struct B(Vec<u64>);
impl T for A {
    fn f(&self, n: u64) -> Result<u64, String> {
        if n % 7 == 0 {
            Err(format!("bad {n}"))
        } else {
            Ok(n * self.0)
        }
    }
}
impl T for B {
    fn f(&self, n: u64) -> Result<u64, String> {
        self.0
            .iter()
            .map(|x| x ^ n)
            .reduce(|a, b| a.wrapping_add(b))
            .ok_or_else(|| "none".to_string())
    }
}
impl Drop for B {
    fn drop(&mut self) {
        std::hint::black_box(self.0.len());
    }
}
#[inline(never)]
fn deep(n: u64, t: &dyn T) -> Result<u64, String> {
    if n == 0 {
        return Ok(1);
    }
    let a = deep(n - 1, t)?;
    Ok(a.wrapping_add(t.f(n)?))
}
#[inline(never)]
fn big(n: usize) -> [u8; 5000] {
    let mut a = [0u8; 5000];
    a[n % 5000] = n as u8;
    std::hint::black_box(a)
}
fn main() {
    let ts: Vec<Box<dyn T>> = vec![Box::new(A(3)), Box::new(B((0..20).collect()))];
    let mut s = 0u64;
    let mut m = HashMap::new();
    let mut b = BTreeMap::new();
    for i in 0..6u64 {
        for t in &ts {
            match deep(i + 2, t.as_ref()) {
                Ok(v) => s = s.wrapping_add(v),
                Err(e) => s += e.len() as u64,
            }
        }
        s += big(i as usize)[3] as u64;
        *m.entry(i % 3).or_insert(0u64) += s;
        b.insert(s, format!("{s:?} {i:x}"));
    }
    let mut v: Vec<String> = b.into_values().collect();
    v.sort_by_key(|x| x.len());
    std::panic::set_hook(Box::new(|_| {}));
    let r = std::panic::catch_unwind(|| {
        if std::hint::black_box(1) == 1 {
            panic!("x {}", 3)
        }
    });
    std::process::exit((r.is_ok() || v.is_empty() || m.is_empty()) as i32)
}
