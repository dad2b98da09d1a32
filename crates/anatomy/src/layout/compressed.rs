//! A debug section's bytes, uncompressed (gABI, "Section compression"; `.zdebug_*` of older binutils), within limits: a header of some
//! bytes may claim any size.

use std::io::Read;

use object::{CompressionFormat, ObjectSection};

/// A section's bytes.
#[derive(Debug)]
pub(super) enum Bytes {
    /// From and to these places in the file.
    Mapped(usize, usize),
    /// Uncompressed.
    Owned(Vec<u8>),
}

/// Debug information becomes 3 to 10 times as large when it is uncompressed. What becomes more than this many times as large,
/// and larger than the size below, is no compiler's.
const MOST_TIMES: u64 = 100;
const ALWAYS_FITS: u64 = 64 << 20;

/// The bytes of a section; `old`: it may be compressed in the old way.
pub(super) fn bytes<'data>(
    contents: &[u8],
    section: &impl ObjectSection<'data>,
    old: bool,
) -> Result<Bytes, String> {
    let compressed = section.compressed_data().map_err(|error| error.to_string())?;
    let limited = |size: u64| {
        let most = (compressed.data.len() as u64).saturating_mul(MOST_TIMES).max(ALWAYS_FITS);
        (size <= most).then_some(size).ok_or_else(|| format!("{size} bytes uncompressed are too many for it"))
    };
    match compressed.format {
        CompressionFormat::None if old && compressed.data.starts_with(b"ZLIB") => {
            let size = compressed
                .data
                .get(4..12)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_be_bytes);
            let data = compressed.data.get(12..).unwrap_or_default();
            inflated(flate2::read::ZlibDecoder::new(data), limited(size)?)
        }
        CompressionFormat::None => {
            let (start, size) = section.file_range().unwrap_or((0, 0));
            let end = start.checked_add(size).filter(|end| *end <= contents.len() as u64);
            end.map(|end| Bytes::Mapped(start as usize, end as usize))
                .ok_or_else(|| "the file ends before it".to_owned())
        }
        CompressionFormat::Zlib => {
            inflated(flate2::read::ZlibDecoder::new(compressed.data), limited(compressed.uncompressed_size)?)
        }
        CompressionFormat::Zstandard => {
            let size = limited(compressed.uncompressed_size)?;
            inflated(
                zstd::stream::read::Decoder::new(compressed.data).map_err(|error| error.to_string())?,
                size,
            )
        }
        _ => Err("its compression is not known".to_owned()),
    }
}

fn inflated(from: impl Read, size: u64) -> Result<Bytes, String> {
    let mut bytes = Vec::new();
    from.take(size).read_to_end(&mut bytes).map_err(|error| format!("it cannot be uncompressed: {error}"))?;
    Ok(Bytes::Owned(bytes))
}
