# For cross-compiling with Debian's g++-aarch64-linux-gnu: cmake -DCMAKE_TOOLCHAIN_FILE=native/aarch64-linux-gnu.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
