//! Models of caches by name: the geometry that the plugin of QEMU gives to the caches of an emulated machine.

/// A cache: its size in bytes, its ways, and the bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheGeometry {
    /// All of it, in bytes.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// A line, in bytes.
    pub line: u32,
}

/// A TLB: its entries and its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlbGeometry {
    /// Entries.
    pub entries: u32,
    /// Entries of a set.
    pub ways: u32,
}

/// The caches of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// First level, instructions.
    pub l1i: CacheGeometry,
    /// First level, data.
    pub l1d: CacheGeometry,
    /// Last level, both.
    pub ll: CacheGeometry,
    /// TLB of instructions.
    pub itlb: TlbGeometry,
    /// TLB of data.
    pub dtlb: TlbGeometry,
}

/// A processor whose geometry is known.
#[derive(Debug, PartialEq, Eq)]
pub struct CacheModelRow {
    /// Its name.
    pub name: &'static str,
    /// Its caches.
    pub geometry: Geometry,
}

const fn cache(kib: u64, ways: u32) -> CacheGeometry {
    CacheGeometry { bytes: kib << 10, ways, line: 64 }
}

const fn tlb(entries: u32, ways: u32) -> TlbGeometry {
    TlbGeometry { entries, ways }
}

/// The processors of the papers that Widthwise measures again, as such processors describe themselves by CPUID. TLBs are those of the
/// first level, for pages of 4 KiB.
pub static CACHE_MODELS: &[CacheModelRow] = &[
    // peringer-2007. CPUID of an Athlon 64 X2 4200+ (VirtualBox, VMMR3/cpus/AMD_Athlon_64_X2_Dual_Core_4200.h): functions 8000_0005h
    // (FF08FF08 FF20FF20 40020140 40020140) and 8000_0006h (ECX 02008140).
    CacheModelRow {
        name: "athlon-64",
        geometry: Geometry {
            l1i: cache(64, 2),
            l1d: cache(64, 2),
            ll: cache(512, 16),
            itlb: tlb(32, 32),
            dtlb: tlb(32, 32),
        },
    },
    // innocente-2012. CPUID of a Xeon E5-2660 (klauspost/cpuid, cpuid_test.go): leaf 4 (01C0003F 3F; last level 04C0003F 3FFF), leaf 2
    // with the descriptor 03h (dTLB). Its iTLB is that of a core without hyper-threading: descriptor B0h, as an i5-2300 has it (valgrind,
    // VEX/priv/guest_amd64_helpers.c); with it each thread has half (B2h). Descriptors: Intel SDM 2A, CPUID, table 3-12.
    CacheModelRow {
        name: "sandy-bridge",
        geometry: Geometry {
            l1i: cache(32, 8),
            l1d: cache(32, 8),
            ll: cache(20 << 10, 20),
            itlb: tlb(128, 4),
            dtlb: tlb(64, 4),
        },
    },
    // innocente-2012. CPUID of an FX-8150, a die of which an Opteron 6200 has two (VirtualBox, VMMR3/cpus/AMD_FX_8150_Eight_Core.h):
    // functions 8000_0005h (FF20FF18 FF20FF30 10040140 40020140) and 8000_001Dh (last level 0FC0003F 7FF).
    CacheModelRow {
        name: "bulldozer",
        geometry: Geometry {
            l1i: cache(64, 2),
            l1d: cache(16, 4),
            ll: cache(8 << 10, 64),
            itlb: tlb(48, 48),
            dtlb: tlb(32, 32),
        },
    },
];

/// The name of this machine's own geometry, the default.
pub const HOST: &str = "host";

/// Which caches an emulated machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheModel {
    /// Those of this machine's processor.
    #[default]
    Host,
    /// Those of a row of [`CACHE_MODELS`].
    Named(&'static CacheModelRow),
}

impl CacheModel {
    /// All, this machine's own first.
    pub fn all() -> impl Iterator<Item = CacheModel> {
        std::iter::once(CacheModel::Host).chain(CACHE_MODELS.iter().map(CacheModel::Named))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CacheModel::Host => HOST,
            CacheModel::Named(row) => row.name,
        }
    }

    /// The model of that name.
    pub fn find(name: &str) -> Option<CacheModel> {
        CacheModel::all().find(|model| model.name() == name)
    }
}

impl Geometry {
    /// The options of runtime/plugin/plugin.c.
    pub fn options(&self) -> String {
        let cache = |name: &str, cache: CacheGeometry| {
            format!("{name}={}:{}:{}", cache.bytes, cache.ways, cache.line)
        };
        let tlb = |name: &str, tlb: TlbGeometry| format!("{name}={}:{}", tlb.entries, tlb.ways);
        let all = [
            cache("l1i", self.l1i),
            cache("l1d", self.l1d),
            cache("ll", self.ll),
            tlb("itlb", self.itlb),
            tlb("dtlb", self.dtlb),
        ];
        all.join(",")
    }

    /// For a reader: `L1i 32 KiB, 8 ways; …`.
    pub fn text(&self) -> String {
        let cache = |name: &str, cache: CacheGeometry| {
            format!("{name} {} KiB, {} ways", cache.bytes >> 10, cache.ways)
        };
        let tlb = |name: &str, tlb: TlbGeometry| format!("{name} {} entries, {} ways", tlb.entries, tlb.ways);
        let all = [
            cache("L1i", self.l1i),
            cache("L1d", self.l1d),
            cache("last level", self.ll),
            tlb("iTLB", self.itlb),
            tlb("dTLB", self.dtlb),
        ];
        format!("{}; lines of {} bytes", all.join("; "), self.l1d.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUID leaf 4, and AMD's 8000_001Dh: lines, partitions and ways in EBX, sets in ECX.
    fn of_leaf(ebx: u32, sets: u32) -> CacheGeometry {
        let (line, parts, ways) = ((ebx & 0xfff) + 1, (ebx >> 12 & 0x3ff) + 1, (ebx >> 22) + 1);
        CacheGeometry { bytes: u64::from(line * parts * ways * (sets + 1)), ways, line }
    }

    /// AMD's 8000_0005h: a cache in ECX and EDX, both TLBs in EBX, of which FFh is full associativity.
    fn of_amd(word: u32) -> CacheGeometry {
        cache(u64::from(word >> 24), word >> 16 & 0xff)
    }

    #[test]
    fn geometries_are_those_that_processors_report() {
        let of = |name: &str| match CacheModel::find(name) {
            Some(CacheModel::Named(row)) => row.geometry,
            other => panic!("{name}: {other:?}"),
        };
        let first = |name: &str| {
            let geometry = of(name);
            (geometry.l1d, geometry.l1i, geometry.dtlb, geometry.itlb)
        };
        assert_eq!(
            first("athlon-64"),
            (of_amd(0x4002_0140), of_amd(0x4002_0140), tlb(0x20, 0x20), tlb(0x20, 0x20))
        );
        // 8000_0006h: KiB, and the code 8 of 16 ways.
        assert_eq!(of("athlon-64").ll, cache(0x0200_8140 >> 16, 16));
        assert_eq!(
            first("bulldozer"),
            (of_amd(0x1004_0140), of_amd(0x4002_0140), tlb(0x20, 0x20), tlb(0x30, 0x30))
        );
        assert_eq!(of("bulldozer").ll, of_leaf(0x0fc0_003f, 0x7ff));
        let (data, code, ..) = first("sandy-bridge");
        assert_eq!([data, code], [of_leaf(0x01c0_003f, 0x3f); 2]);
        assert_eq!(of("sandy-bridge").ll, of_leaf(0x04c0_003f, 0x3fff));
    }

    #[test]
    fn every_model_has_whole_sets_and_is_found_by_its_name() {
        for model in CacheModel::all() {
            assert_eq!(CacheModel::find(model.name()), Some(model));
        }
        for row in CACHE_MODELS {
            let Geometry { l1i, l1d, ll, itlb, dtlb } = row.geometry;
            for cache in [l1i, l1d, ll] {
                assert_eq!(cache.bytes % u64::from(cache.ways * cache.line), 0, "{}", row.name);
            }
            for tlb in [itlb, dtlb] {
                assert_eq!(tlb.entries % tlb.ways, 0, "{}", row.name);
            }
        }
        let options = CACHE_MODELS[0].geometry.options();
        assert_eq!(options, "l1i=65536:2:64,l1d=65536:2:64,ll=524288:16:64,itlb=32:32,dtlb=32:32");
    }
}
