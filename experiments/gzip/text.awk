# Prints LINES lines of words that look like English and mean nothing; the same on every machine.
# awk -v LINES=400000 -f text.awk
#
# The random numbers are Lehmer's (Park and Miller's constants): every product stays below 2^53, so that each awk's
# floating-point numbers hold it exactly.

function random(below) {
  seed = (seed * 16807) % 2147483647
  return seed % below
}

BEGIN {
  seed = 2026
  starts = split("b br c ch d f g gr h j k l m n p pl qu r s sh st t th tr v w", start, " ")
  vowels = split("a e i o u ai ea ee ou", vowel, " ")
  ends = split("b ck d ll m n nd ng r rd s ss st t tch", end, " ")
  tails = split("a al ation ed er ing ion ity ly ment ness s", tail, " ")
  for (i = 1; i <= 4000; i++) {
    word = start[1 + random(starts)] vowel[1 + random(vowels)] end[1 + random(ends)]
    if (random(2)) word = word vowel[1 + random(vowels)] end[1 + random(ends)]
    if (random(3)) word = word tail[1 + random(tails)]
    words[i] = word
  }
  for (line = 1; line <= LINES; line++) {
    text = ""
    for (count = 5 + random(10); count > 0; count--) {
      # The smaller of two: some words are common and most are rare.
      first = random(4000)
      second = random(4000)
      text = text " " words[1 + (first < second ? first : second)]
    }
    print substr(text, 2)
  }
}
