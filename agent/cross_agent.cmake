# Cross-builds the agent for AArch64 beside the one for this machine, so that an emulator can run
# AArch64 programs under the recorder here. The sources are the same, except those in arch/.
find_program(AARCH64_GCC aarch64-linux-gnu-gcc REQUIRED)

set(cross_folder ${CMAKE_CURRENT_BINARY_DIR}/aarch64)
file(MAKE_DIRECTORY ${cross_folder})
set(cross_objects)
foreach(target sj_recorder sj_inproc_link sj_hooks sj_inproc_objc sj_inproc_mono sj_inproc_jvm sj_inproc_heap_guard
    sj_inproc_objc_zombies sj_inproc_core sj_inproc_launcher)
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    get_filename_component(component ${folder} NAME)
    set(machine_sources ${sources})
    list(FILTER machine_sources INCLUDE REGEX "^arch/")
    list(FILTER sources EXCLUDE REGEX "^arch/")
    if(machine_sources) # a component without such sources may share another one's folder
        sj_arch_sources(machine_sources ${folder} aarch64)
    endif()
    foreach(source ${sources} ${machine_sources})
        get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
        get_filename_component(name ${source} NAME)
        set(object ${cross_folder}/${component}-${name}.o)
        add_custom_command(OUTPUT ${object}
            COMMAND ${AARCH64_GCC} -std=c17 -D_GNU_SOURCE -DSJ_VERSION="${PROJECT_VERSION}"
                -I${CMAKE_SOURCE_DIR} -isystem ${JVMTI_INCLUDE} -isystem ${JVMTI_INCLUDE}/linux -O2 -g -fPIC -fvisibility=hidden -fno-strict-aliasing
                -mgeneral-regs-only -mno-outline-atomics -fno-stack-protector
                -fno-tree-loop-distribute-patterns -ftls-model=initial-exec
                -Wall -Wextra -Wshadow -Wcast-align -Wundef -Werror
                -MD -MF ${object}.d -MT ${object} -c ${path} -o ${object}
            DEPENDS ${path} DEPFILE ${object}.d VERBATIM)
        list(APPEND cross_objects ${object})
    endforeach()
endforeach()

set(SJ_AARCH64_AGENT ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libsojourn-agent-aarch64.so)
add_custom_command(OUTPUT ${SJ_AARCH64_AGENT}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
    COMMAND ${AARCH64_GCC} -shared -o ${SJ_AARCH64_AGENT} ${cross_objects}
        -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,initfirst -Wl,--as-needed
    DEPENDS ${cross_objects} VERBATIM)
add_custom_target(sojourn-agent-aarch64 ALL DEPENDS ${SJ_AARCH64_AGENT})
set(SJ_AARCH64_OBJECTS ${cross_objects} CACHE INTERNAL "objects of the agent for AArch64")
