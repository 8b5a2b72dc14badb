# Cross-builds Sojourn for AArch64 (`cmake --preset aarch64`). The headers and libraries come from the
# tree that .ci/sysroot makes. SJ_SYSROOT, in the environment, names another tree.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)

if(DEFINED ENV{SJ_SYSROOT})
    set(CMAKE_SYSROOT $ENV{SJ_SYSROOT})
else()
    get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot ABSOLUTE)
endif()
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include/aarch64-linux-gnu)
    message(FATAL_ERROR "${CMAKE_SYSROOT} is not a tree for AArch64: run .ci/sysroot ${CMAKE_SYSROOT}")
endif()

# The build runs one program that it has made: `sojourn completion` writes the completions.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})

set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
