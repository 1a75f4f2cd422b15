#!/bin/sh
# Installs the libraries, the headers, the files for pkg-config and CMake, and the program with its
# manual page and completions under $DESTDIR$PREFIX. With the argument `uninstall` it removes them.
# Called by `make install` and `make uninstall`, which set PREFIX and DESTDIR, and to install
# SHARED, STATIC, PROGRAM and STRIP: the program that removes symbols, or nothing to keep them.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^#define LSMKV_VERSION "\(.*\)"$/\1/p' include/lsmkv.h)
major=${version%%.*}
case $PREFIX in
/*) ;;
*) echo "PREFIX must be an absolute path, not $PREFIX" >&2; exit 1 ;;
esac
lib=$DESTDIR$PREFIX/lib
include=$DESTDIR$PREFIX/include
share=$DESTDIR$PREFIX/share

if [ "${1:-}" = uninstall ]; then
    rm -f "$lib/liblsmkv.so" "$lib/liblsmkv.so.$major" "$lib/liblsmkv.so.$version" \
        "$lib/liblsmkv.a" "$lib/pkgconfig/lsmkv.pc" "$include/lsmkv.h" "$include/lsmkv.hpp" \
        "$DESTDIR$PREFIX/bin/lsmkv" "$share/man/man1/lsmkv.1" \
        "$share/bash-completion/completions/lsmkv" "$share/zsh/site-functions/_lsmkv" \
        "$share/fish/vendor_completions.d/lsmkv.fish"
    rm -rf "$lib/cmake/lsmkv" "$include/lsmkv"
    echo "uninstalled lsmkv $version from $DESTDIR$PREFIX"
    exit 0
fi

strip_file() { # file, options...
    if [ -z "${STRIP:-}" ]; then return; fi
    if command -v "$STRIP" >/dev/null; then
        "$STRIP" "$@"
    else
        echo "there is no $STRIP: $1 keeps its symbols" >&2
    fi
}

install -d "$lib/pkgconfig" "$lib/cmake/lsmkv" "$include/lsmkv"
install -m 755 "$SHARED" "$lib/liblsmkv.so.$version"
strip_file "$lib/liblsmkv.so.$version" --strip-unneeded
ln -sf "liblsmkv.so.$version" "$lib/liblsmkv.so.$major"
ln -sf "liblsmkv.so.$major" "$lib/liblsmkv.so"
install -m 644 "$STATIC" "$lib/liblsmkv.a"
# Also the bitcode, which only rustc could use.
strip_file "$lib/liblsmkv.a" --strip-debug -R .llvmbc -R .llvmcmd
install -m 644 include/lsmkv.h bindings/cpp/lsmkv.hpp "$include"
install -m 644 bindings/cpp/lsmkv/*.hpp "$include/lsmkv"

cat > "$lib/pkgconfig/lsmkv.pc" <<PC
prefix=$PREFIX
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: lsmkv
Description: An embedded, persistent store of Redis data structures
Version: $version
Libs: -L\${libdir} -llsmkv
Libs.private: -lpthread -ldl -lm
Cflags: -I\${includedir}
PC

# Paths are relative to this file, so that an installation can be moved.
cat > "$lib/cmake/lsmkv/lsmkvConfig.cmake" <<CMAKE
# Targets: lsmkv::lsmkv, the shared library; lsmkv::static, the static one.
get_filename_component(_lsmkv_prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET lsmkv::lsmkv)
  add_library(lsmkv::lsmkv SHARED IMPORTED)
  set_target_properties(lsmkv::lsmkv PROPERTIES
    IMPORTED_LOCATION "\${_lsmkv_prefix}/lib/liblsmkv.so.$version"
    IMPORTED_SONAME "liblsmkv.so.$major"
    INTERFACE_INCLUDE_DIRECTORIES "\${_lsmkv_prefix}/include")
  add_library(lsmkv::static STATIC IMPORTED)
  set_target_properties(lsmkv::static PROPERTIES
    IMPORTED_LOCATION "\${_lsmkv_prefix}/lib/liblsmkv.a"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m"
    INTERFACE_INCLUDE_DIRECTORIES "\${_lsmkv_prefix}/include")
endif()
unset(_lsmkv_prefix)
CMAKE

# Versions with the same major number are compatible; before 1.0, with the same minor number.
cat > "$lib/cmake/lsmkv/lsmkvConfigVersion.cmake" <<CMAKE
set(PACKAGE_VERSION "$version")
string(REGEX MATCH "^(0\\\\.[0-9]+|[0-9]+)" _lsmkv_has "\${PACKAGE_VERSION}")
string(REGEX MATCH "^(0\\\\.[0-9]+|[0-9]+)" _lsmkv_wants "\${PACKAGE_FIND_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR
   (PACKAGE_FIND_VERSION MATCHES "\\\\." AND NOT _lsmkv_has STREQUAL _lsmkv_wants))
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(_lsmkv_has)
unset(_lsmkv_wants)
CMAKE

install -d "$DESTDIR$PREFIX/bin" "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
install -m 755 "$PROGRAM" "$DESTDIR$PREFIX/bin/lsmkv"
strip_file "$DESTDIR$PREFIX/bin/lsmkv"
"$PROGRAM" man > "$share/man/man1/lsmkv.1"
"$PROGRAM" completions bash > "$share/bash-completion/completions/lsmkv"
"$PROGRAM" completions zsh > "$share/zsh/site-functions/_lsmkv"
"$PROGRAM" completions fish > "$share/fish/vendor_completions.d/lsmkv.fish"

echo "installed lsmkv $version under $DESTDIR$PREFIX"
