//! One binary for every processor: hot loops are compiled several times and chosen at run time.
//!
//! On x86-64 there is AVX-512 (F, BW, VL, DQ, CD), AVX2 with BMI and FMA, and the baseline; elsewhere the
//! portable code, which the compiler turns into NEON on AArch64 because NEON is its baseline.

use std::sync::OnceLock;

/// Instruction sets that code is compiled for, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// What every processor of the architecture has.
    Portable,
    /// AVX2, FMA, BMI1, BMI2, POPCNT, LZCNT.
    Avx2,
    /// AVX-512 F, BW, VL, DQ, CD besides.
    Avx512,
}

/// The best level of this processor; `COLOAD_SIMD=portable|avx2` lowers it.
pub fn simd_level() -> SimdLevel {
    static LEVEL: OnceLock<SimdLevel> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let best = detect();
        match std::env::var("COLOAD_SIMD").as_deref() {
            Ok("portable") => SimdLevel::Portable,
            Ok("avx2") => best.min(SimdLevel::Avx2),
            _ => best,
        }
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> SimdLevel {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512cd");
    match (avx2, avx512) {
        (_, true) => SimdLevel::Avx512,
        (true, false) => SimdLevel::Avx2,
        _ => SimdLevel::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> SimdLevel {
    SimdLevel::Portable
}

/// Makes `$name` choose at run time among compilations of the inlined function `$inner`.
///
/// `simd_dispatch! { pub fn name(arg: Type, ...) -> Out = inner; }`
#[macro_export]
macro_rules! simd_dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? = $inner:path;) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name($($arg: $ty),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                fn avx512($($arg: $ty),*) $(-> $out)? { $inner($($arg),*) }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                fn avx2($($arg: $ty),*) $(-> $out)? { $inner($($arg),*) }
                match $crate::simd_level() {
                    // SAFETY: the level says that the processor has these instructions.
                    $crate::SimdLevel::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::SimdLevel::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::SimdLevel::Portable => {}
                }
            }
            $inner($($arg),*)
        }
    };
}
