# Build settings and the helpers that declare layers, programs and tests.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(FUSE3 REQUIRED IMPORTED_TARGET fuse3)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(LMDB REQUIRED IMPORTED_TARGET lmdb)
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET libevent libevent_pthreads)
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(LIBXML2 REQUIRED IMPORTED_TARGET libxml-2.0)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)

add_library(dartfs_flags INTERFACE)
target_compile_options(dartfs_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Werror -fno-omit-frame-pointer)
target_include_directories(dartfs_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(dartfs_flags INTERFACE
  DARTFS_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
target_link_libraries(dartfs_flags INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(dartfs_flags INTERFACE -Wthread-safety)
endif()
if(DARTFS_SANITIZE)
  target_compile_options(dartfs_flags INTERFACE -fsanitize=${DARTFS_SANITIZE}
    -fno-sanitize-recover=all)
  target_link_options(dartfs_flags INTERFACE -fsanitize=${DARTFS_SANITIZE})
  if(DARTFS_SANITIZE MATCHES "thread")
    # GCC's warning that atomic_thread_fence is not seen by the thread sanitizer (libstdc++ only).
    target_compile_options(dartfs_flags INTERFACE -Wno-tsan)
  endif()
endif()

# dartfs_layer(NAME DIR <folder> DEPS <targets...>): one static library per layer, all .cc in its
# folder. A layer without sources yet is an interface library, so that its users need not change.
function(dartfs_layer name)
  cmake_parse_arguments(L "" "DIR" "DEPS;PRIVATE_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${L_DIR}/*.cc)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC dartfs_flags ${L_DEPS} PRIVATE ${L_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE dartfs_flags ${L_DEPS} ${L_PRIVATE_DEPS})
  endif()
endfunction()

# dartfs_layer_test(NAME DIR <folder> DEPS <targets...>): the one test executable of a layer; it
# links that layer and what is below it, and every gtest case becomes one CTest case.
function(dartfs_layer_test name)
  cmake_parse_arguments(T "" "DIR;TIMEOUT" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${T_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${T_DEPS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE -Wno-unused-result)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS unit)
endfunction()

# dartfs_embed(TARGET HEADER <header> NAMESPACE <namespace> <constant> <file>...): files as text in
# the program. The header declares each constant as `extern const std::string_view`.
function(dartfs_embed target)
  cmake_parse_arguments(E "" "HEADER;NAMESPACE" "" ${ARGN})
  set(pairs ${E_UNPARSED_ARGUMENTS})
  set(files)
  set(index 1)
  list(LENGTH pairs length)
  while(index LESS length)
    list(GET pairs ${index} file)
    list(APPEND files ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    math(EXPR index "${index} + 2")
  endwhile()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  string(REPLACE ";" "," list "${pairs}")
  add_custom_command(OUTPUT ${output} DEPENDS ${script} ${files} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D HEADER=${E_HEADER} -D NAMESPACE=${E_NAMESPACE}
      -D TOP=${CMAKE_CURRENT_SOURCE_DIR} -D PAIRS=${list} -P ${script})
  target_sources(${target} PRIVATE ${output})
endfunction()
