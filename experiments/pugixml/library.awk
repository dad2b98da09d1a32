# Prints an XML document of BOOKS books; the same on every machine.
# awk -v BOOKS=60000 -f library.awk
#
# The random numbers are Lehmer's (Park and Miller's constants): every product stays below 2^53, so that each awk's
# floating-point numbers hold it exactly.

function random(below) {
  seed = (seed * 16807) % 2147483647
  return seed % below
}

function name(    text, count) {
  text = ""
  for (count = 2 + random(3); count > 0; count--) text = text syllable[1 + random(syllables)]
  return text
}

BEGIN {
  seed = 2026
  syllables = split("an bel cor dan el for gar hal is jo kel lin mar nor os pel qua ros sen tal ur vin wes yor", syllable, " ")
  print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
  print "<library>"
  for (book = 1; book <= BOOKS; book++) {
    printf "  <book id=\"b%d\" year=\"%d\" language=\"%s\">\n", book, 1900 + random(120), random(4) ? "en" : "de"
    printf "    <title>%s %s</title>\n    <authors>\n", name(), name()
    for (authors = 1 + random(3); authors > 0; authors--)
      printf "      <author><first>%s</first><last>%s</last></author>\n", name(), name()
    printf "    </authors>\n    <price currency=\"EUR\">%d.%02d</price>\n", 5 + random(60), random(100)
    # A reference to any other book: following it leads to a far part of the tree.
    for (references = random(5); references > 0; references--)
      printf "    <see book=\"%d\"/>\n", 1 + random(BOOKS)
    print "  </book>"
  }
  print "</library>"
}
