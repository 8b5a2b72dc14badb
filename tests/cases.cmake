# How tests are declared. Each carries a kind and the sets that it runs in, as labels of ctest:
#   kind   unit (a cmocka program, or a replayed corpus of a fuzz target), program (anything else that
#          runs what was built), system, web, lint, aarch64
#   set    quick, default, all: what `./check --quick`, `./check` and `./check --all` run; who is in a
#          set is in the larger ones
# Units run in the asan preset only, everything else in the release preset only: SJ_UNIT_PROGRAMS is
# what the first builds, and what the second leaves out. `./check --all` runs all in both.

# The tests of the quick set beside units and lint: of each component one or two that cost little.
set(SJ_QUICK_TESTS system.attach_sees_everything system.installed system.same_world system.how_it_ends
    system.refused_programs system.first_plan system.mono_forks system.java_costs system.policy system.change_ways
    system.heap_allocators system.judge_sqlite system.direct system.forward_choices web.live
    collector-server.cli.cli collector-server.cli.closing_lines collector-server.cli.manuals)
# Too long for the default set: they run for many minutes whatever is cut.
set(SJ_LONG_TESTS system.fleet_spool system.cluster system.package_bytes system.package_arm64)
# A unit that costs more is not in the quick set.
set(SJ_QUICK_UNIT_CPU_MS 1000)

# The limit of a test in seconds: for a machine under load, and more than tests wait for anything.
set(SJ_TEST_LIMIT 1800)
if(DEFINED ENV{SJ_LONG})
    set(SJ_TEST_LIMIT 14400)
endif()

# Units of the recorder's threads, which `./check --all` also runs under ThreadSanitizer (set threads, preset tsan):
# many processes, a killed recorder's session, the link, rules that change while they are read.
set(SJ_THREAD_TESTS agent.registry.registry agent.registry.changes_table agent.link.link_server
    agent.recording.recovery)

# The cost of each test when `.ci/costs --write` last wrote the file: name, ms of CPU.
set(SJ_COSTS_FILE ${CMAKE_CURRENT_LIST_DIR}/costs.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SJ_COSTS_FILE})
file(STRINGS ${SJ_COSTS_FILE} SJ_COSTS)
foreach(row ${SJ_COSTS})
    string(REPLACE " " ";" row "${row}")
    list(GET row 0 name)
    list(GET row 1 SJ_CPU_MS_OF_${name})
endforeach()

# Debian's, which .ci/packages installs, and no slower one that is before it in PATH.
find_program(PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

# Each test appends its line to it; GNU time is a small program, and its exit code is the test's.
find_program(GNU_TIME time REQUIRED)
set(SJ_MEASURED_FILE ${CMAKE_BINARY_DIR}/measured.txt)

# sj_kind_of(NAME OUT) the kind by the name, unless it is a unit.
function(sj_kind_of name out)
    set(${out} program PARENT_SCOPE)
    foreach(kind system web lint aarch64)
        if(name MATCHES "^${kind}[.]")
            set(${out} ${kind} PARENT_SCOPE)
        endif()
    endforeach()
    if(name STREQUAL bench.subjects)
        set(${out} system PARENT_SCOPE)
    endif()
endfunction()

# sj_sets_of(NAME KIND OUT) the sets that it runs in.
function(sj_sets_of name kind out)
    set(sets default all)
    if(name IN_LIST SJ_LONG_TESTS)
        set(sets all)
    elseif(name IN_LIST SJ_QUICK_TESTS OR kind STREQUAL "lint")
        list(PREPEND sets quick)
    elseif(kind STREQUAL "unit")
        if(NOT DEFINED SJ_CPU_MS_OF_${name} OR SJ_CPU_MS_OF_${name} LESS_EQUAL SJ_QUICK_UNIT_CPU_MS)
            list(PREPEND sets quick)
        endif()
    endif()
    if(name IN_LIST SJ_THREAD_TESTS)
        list(APPEND sets threads)
    endif()
    set(${out} ${sets} PARENT_SCOPE)
endfunction()

# sj_weigh(NAME) tells ctest to start those first that cost much. One without a row in costs.txt is started
# early: at the end it could keep a core idle.
function(sj_weigh name)
    set(cost 10000)
    if(DEFINED SJ_CPU_MS_OF_${name})
        set(cost ${SJ_CPU_MS_OF_${name}})
    endif()
    set_property(TEST ${name} PROPERTY COST ${cost})
endfunction()

# sj_add_test(NAME name COMMAND word... [UNIT] [TIMEOUT seconds] [WORKING_DIRECTORY folder]) is add_test
# with labels, weight and measurement. A target's program is $<TARGET_FILE:target>.
function(sj_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "UNIT" "NAME;TIMEOUT;WORKING_DIRECTORY" "COMMAND")
    if(NOT arg_WORKING_DIRECTORY)
        set(arg_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT ${SJ_TEST_LIMIT})
    endif()
    add_test(NAME ${arg_NAME} WORKING_DIRECTORY ${arg_WORKING_DIRECTORY}
        COMMAND ${GNU_TIME} -q -a -o ${SJ_MEASURED_FILE} -f "${arg_NAME} %U %S %e" ${arg_COMMAND})
    sj_kind_of(${arg_NAME} kind)
    if(arg_UNIT)
        set(kind unit)
    endif()
    sj_sets_of(${arg_NAME} ${kind} sets)
    set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${kind};${sets}")
    sj_weigh(${arg_NAME})
    if(NOT default IN_LIST sets AND NOT DEFINED ENV{SJ_LONG})
        set_tests_properties(${arg_NAME} PROPERTIES DISABLED ON)
    endif()
endfunction()

# Code that runs inside the traced program is never sanitized, and is optimized in every preset: its
# tests say more about the release. The codec's programs are run by an emulator there, too.
set(SJ_RELEASED_UNITS "^(agent[.]inproc[.]|proto[.]block[.]block(_times)?$)")

# sj_unit_target(NAME...) marks targets as parts of units: the release does without.
function(sj_unit_target)
    set_property(GLOBAL APPEND PROPERTY SJ_UNIT_PROGRAMS ${ARGN})
endfunction()

# sj_test(NAME SOURCES... [LINK libs...] [TIMEOUT seconds]) makes one cmocka program
# and the ctest of the same name; names mirror the tree: agent.recorder.ring.
function(sj_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LINK")
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE sj_options sj_sanitized PkgConfig::CMOCKA ${arg_LINK})
    set(unit UNIT)
    if(name MATCHES "${SJ_RELEASED_UNITS}")
        set(unit)
    else()
        sj_unit_target(${name})
    endif()
    sj_add_test(NAME ${name} COMMAND $<TARGET_FILE:${name}> WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
        TIMEOUT "${arg_TIMEOUT}" ${unit})
endfunction()

# sj_fuzz(NAME SOURCE CORPUS [LINK libs...]) makes a fuzz target: with clang and
# SJ_FUZZ=ON a libFuzzer program, else one that replays the corpus, which ctest runs either way.
function(sj_fuzz name source corpus)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "LINK")
    if(SJ_FUZZ)
        add_executable(fuzz.${name} ${source})
        target_compile_options(fuzz.${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(fuzz.${name} PRIVATE -fsanitize=fuzzer)
        set(runs -runs=0)
    else()
        add_executable(fuzz.${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.c)
        set(runs)
    endif()
    set_target_properties(fuzz.${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(fuzz.${name} PRIVATE sj_options sj_sanitized ${arg_LINK})
    sj_unit_target(fuzz.${name})
    sj_add_test(NAME fuzz.${name} COMMAND $<TARGET_FILE:fuzz.${name}> ${runs} ${corpus} UNIT)
endfunction()

# sj_list_targets(FOLDER OUT) what can be built in a folder and below.
function(sj_list_targets folder out)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(below ${folders})
        sj_list_targets(${below} more)
        list(APPEND targets ${more})
    endforeach()
    set(${out} ${targets} PARENT_SCOPE)
endfunction()

# `units` builds the programs of the units, `released` what everything else runs; benches are run by
# hand and are in neither.
function(sj_add_build_sets)
    get_property(units GLOBAL PROPERTY SJ_UNIT_PROGRAMS)
    sj_list_targets(${CMAKE_SOURCE_DIR} released)
    list(REMOVE_ITEM released ${units})
    list(FILTER released EXCLUDE REGEX "^(bench[.].*|objc_bench)$")
    add_custom_target(units DEPENDS ${units})
    add_custom_target(threads DEPENDS ${SJ_THREAD_TESTS})
    add_custom_target(released DEPENDS ${released})
endfunction()
