//! Walks recorded stacks with framehop, the fastest unwinder that we know of: a peer of
//! our own walker over the same bytes.
//!
//! Sources: framehop's documentation (Unwinder, Module, ExplicitModuleSectionInfo); the
//! ELF gABI; package capture, which describes the file.
//!
//! Usage: as bench/libunwind/peer.c; there is no mode without a cache, since framehop has
//! no switch for it. Built by bench/peer against a build of framehop's own:
//! rustc --extern framehop=FOLDER/libframehop.rlib -L FOLDER/deps
//!
//! Known gaps: only eh_frame, only 64-bit little-endian ELF files. Whether unwind data was
//! found is not told apart from other reasons to go on.
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

type Bytes = &'static [u8];

/// What is left of a file that is read word by word.
struct Input(Bytes);

impl Input {
    fn take(&mut self, n: u64) -> Bytes {
        let (head, tail) = self.0.split_at_checked(n as usize).expect("the file is cut");
        self.0 = tail;
        head
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let n = self.word();
        String::from_utf8_lossy(self.take(n)).into_owned()
    }
}

/// A file for as long as the process lives; empty if it cannot be read.
fn whole(path: &str) -> Bytes {
    std::fs::read(path).unwrap_or_default().leak()
}

fn number(data: Bytes, at: u64, size: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(data.get(at as usize..at as usize + size)?);
    Some(u64::from_le_bytes(word))
}

/// Addresses and bytes of a section.
type Section = (Range<u64>, Bytes);

/// The sections of an ELF file that have bytes, by name.
fn sections(elf: Bytes) -> Option<HashMap<String, Section>> {
    let (table, count, names) = (number(elf, 40, 8)?, number(elf, 60, 2)?, number(elf, 62, 2)?);
    let field = |i: u64, at: u64, size| number(elf, table + i * 64 + at, size);
    let name_table = field(names, 24, 8)?;
    let mut all = HashMap::new();
    for i in 0..count {
        let (kind, addr, offset, size) = (field(i, 4, 4)?, field(i, 16, 8)?, field(i, 24, 8)?, field(i, 32, 8)?);
        let name = elf.get((name_table + field(i, 0, 4)?) as usize..)?.split(|b| *b == 0).next()?;
        if kind != 8 {
            // not SHT_NOBITS
            let bytes = elf.get(offset as usize..(offset + size) as usize)?;
            all.insert(String::from_utf8_lossy(name).into_owned(), (addr..addr + size, bytes));
        }
    }
    Some(all)
}

type Walker = UnwinderX86_64<Bytes>;

fn module(path: String, range: Range<u64>, bias: u64, elf: Bytes) -> Option<Module<Bytes>> {
    let mut all = sections(elf)?;
    let mut take = |name: &str| all.remove(name).map_or((None, None), |(r, b)| (Some(r), Some(b)));
    let mut info = ExplicitModuleSectionInfo::default();
    (info.text_svma, info.text) = take(".text");
    (info.eh_frame_svma, info.eh_frame) = take(".eh_frame");
    (info.eh_frame_hdr_svma, info.eh_frame_hdr) = take(".eh_frame_hdr");
    info.got_svma = take(".got").0;
    Some(Module::new(path, range, bias, info))
}

fn read_set(f: &mut Input, images: &mut HashMap<String, Bytes>) -> Walker {
    let mut walker = Walker::new();
    for _ in 0..f.word() {
        let (start, end, bias) = (f.word(), f.word(), f.word());
        let path = f.text();
        f.text(); // the build id
        let elf = *images.entry(path.clone()).or_insert_with(|| whole(&path));
        if let Some(m) = module(path, start..end, bias, elf) {
            walker.add_module(m);
        }
    }
    walker
}

/// One stack as the file has it.
struct Stack {
    set: usize,
    limit: u64,
    rip: u64,
    gpr: [u64; 16], // as machine code numbers them
    runs: Vec<(u64, Bytes)>,
}

fn read_stack(f: &mut Input) -> Stack {
    let (set, limit, rip) = (f.word() as usize, f.word(), f.word());
    let gpr = std::array::from_fn(|_| f.word());
    let runs = (0..f.word()).map(|_| {
        let (addr, size) = (f.word(), f.word());
        (addr, f.take(size))
    });
    Stack { set, limit, rip, gpr, runs: runs.collect() }
}

impl Stack {
    #[inline]
    fn read(&self, addr: u64) -> Result<u64, ()> {
        for (low, data) in &self.runs {
            if let Some(word) = data.get(addr.wrapping_sub(*low) as usize..).and_then(|d| d.first_chunk()) {
                return Ok(u64::from_le_bytes(*word));
            }
        }
        Err(())
    }

    /// Gives each frame's address and stack pointer to see, and returns their number.
    #[inline]
    fn walk(&self, walker: &Walker, cache: &mut CacheX86_64, mut see: impl FnMut(u64, u64)) -> u64 {
        let mut regs = UnwindRegsX86_64::new(self.rip, self.gpr[4], self.gpr[5]);
        let mut at = FrameAddress::from_instruction_pointer(self.rip);
        let mut n = 0;
        while n < self.limit {
            see(at.address(), regs.sp());
            n += 1;
            let next = walker.unwind_frame(at, &mut regs, cache, &mut |a| self.read(a));
            let Ok(Some(next)) = next else { break };
            let Some(next) = FrameAddress::from_return_address(next) else { break };
            at = next;
        }
        n
    }
}

/// Answers "w N" and "c N" with "ns frames": N rounds, warm or each with an empty cache.
fn bench(walkers: &[Walker], stacks: &[Stack]) {
    let mut cache = CacheX86_64::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("what to do");
        let (mode, rounds) = line.trim().split_once(' ').expect("mode and rounds");
        let (mut ns, mut frames) = (Duration::ZERO, 0);
        for _ in 0..rounds.trim().parse().expect("a number of rounds") {
            if mode == "c" {
                cache = CacheX86_64::new();
            }
            let begin = Instant::now();
            for s in stacks {
                frames += s.walk(&walkers[s.set], &mut cache, |ip, sp| {
                    std::hint::black_box((ip, sp));
                });
            }
            ns += begin.elapsed();
        }
        println!("{} {}", ns.as_nanos(), frames);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.last().expect("usage: framehop [--bench] FILE");
    let mut f = Input(whole(path));
    assert_eq!(f.take(8), b"SWSTACK1", "not a file of stacks");
    let mut images = HashMap::new();
    let walkers: Vec<Walker> = (0..f.word()).map(|_| read_set(&mut f, &mut images)).collect();
    let stacks: Vec<Stack> = (0..f.word()).map(|_| read_stack(&mut f)).collect();
    if args.len() == 2 && args[0] == "--bench" {
        return bench(&walkers, &stacks);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut cache = CacheX86_64::new();
    for (i, s) in stacks.iter().enumerate() {
        writeln!(out, "walk {i}").unwrap();
        s.walk(&walkers[s.set], &mut cache, |ip, sp| writeln!(out, "{ip:x} {sp:x} 0").unwrap());
    }
}
