#!/bin/sh
# Puts the libraries, the headers, and the files for pkg-config and CMake under $DESTDIR$PREFIX.
# Called by `make install`, which sets SHARED, STATIC, PREFIX and DESTDIR.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^#define LSMKV_VERSION "\(.*\)"$/\1/p' include/lsmkv.h)
major=${version%%.*}
lib=$DESTDIR$PREFIX/lib
include=$DESTDIR$PREFIX/include

install -d "$lib/pkgconfig" "$lib/cmake/lsmkv" "$include"
install -m 755 "$SHARED" "$lib/liblsmkv.so.$version"
ln -sf "liblsmkv.so.$version" "$lib/liblsmkv.so.$major"
ln -sf "liblsmkv.so.$major" "$lib/liblsmkv.so"
install -m 644 "$STATIC" "$lib/liblsmkv.a"
install -m 644 include/lsmkv.h bindings/cpp/lsmkv.hpp "$include"

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

cat > "$lib/cmake/lsmkv/lsmkvConfig.cmake" <<CMAKE
get_filename_component(_lsmkv_prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET lsmkv::lsmkv)
  add_library(lsmkv::lsmkv SHARED IMPORTED)
  set_target_properties(lsmkv::lsmkv PROPERTIES
    IMPORTED_LOCATION "\${_lsmkv_prefix}/lib/liblsmkv.so.$version"
    IMPORTED_SONAME "liblsmkv.so.$major"
    INTERFACE_INCLUDE_DIRECTORIES "\${_lsmkv_prefix}/include")
endif()
unset(_lsmkv_prefix)
CMAKE

cat > "$lib/cmake/lsmkv/lsmkvConfigVersion.cmake" <<CMAKE
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
CMAKE

echo "installed lsmkv $version under $DESTDIR$PREFIX"
