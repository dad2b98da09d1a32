W=/tmp/g1/main/target/debug/widthwise; P=$($W explain --preload)
rm -f l.$1.*; LD_PRELOAD=$P WIDTHWISE_HEAP_LOG=$PWD/l.$1 ./$1 >/dev/null; $W explain $2 l.$1.*
