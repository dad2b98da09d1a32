//! Compressed sections (gABI, "Section compression"; `.zdebug_*` of older binutils).

use std::borrow::Cow;
use std::io::Read;

use object::Endian;

use super::{section_flag, Elf, ElfError, Section};

/// `ch_type` values.
const ZLIB: u32 = 1;
const ZSTD: u32 = 2;
/// No section is unpacked to more: a header of some bytes may claim any size.
const MOST: u64 = 8 << 30;

impl<'a> Elf<'a> {
    /// A section's bytes, unpacked where they are compressed.
    ///
    /// # Errors
    /// The compressed bytes are damaged.
    pub fn unpacked(&self, section: &Section) -> Result<Cow<'a, [u8]>, ElfError> {
        self.unpacked_up_to(section, MOST)
    }

    /// The same, where no more than `most` bytes may come out.
    ///
    /// # Errors
    /// The compressed bytes are damaged, or become too many.
    pub fn unpacked_up_to(&self, section: &Section, most: u64) -> Result<Cow<'a, [u8]>, ElfError> {
        let data = self.data(section);
        let damaged = || ElfError::Damaged(format!("the compressed section {}", section.name));
        if section.has(section_flag::COMPRESSED) {
            let header = if self.is_64 { 24 } else { 12 };
            let size = self.word_at(data, self.word() as usize).ok_or_else(damaged)?;
            let packed = data.get(header..).ok_or_else(damaged)?;
            let kind: [u8; 4] = data[..4].try_into().map_err(|_| damaged())?;
            let bytes = match self.endian.read_u32(kind) {
                _ if size > most => None,
                ZLIB => unpack(&mut flate2::read::ZlibDecoder::new(packed), size),
                ZSTD => zstd::stream::read::Decoder::new(packed)
                    .ok()
                    .and_then(|mut packed| unpack(&mut packed, size)),
                _ => None,
            };
            return bytes.map(Cow::Owned).ok_or_else(damaged);
        }
        if section.name.starts_with(".zdebug") && data.starts_with(b"ZLIB") {
            let size = data.get(4..12).and_then(|size| size.try_into().ok()).ok_or_else(damaged)?;
            let size = Some(u64::from_be_bytes(size)).filter(|size| *size <= most).ok_or_else(damaged)?;
            let mut packed = flate2::read::ZlibDecoder::new(&data[12..]);
            return unpack(&mut packed, size).map(Cow::Owned).ok_or_else(damaged);
        }
        Ok(Cow::Borrowed(data))
    }
}

fn unpack(packed: &mut dyn Read, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    packed.take(size.min(MOST)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}
