# Chooses the arch/ folder of each component: the only place that does. A component whose code runs
# on one machine takes the folder of the machine that is built for. A component that reads programs
# of every machine takes all folders.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "AMD64")
    set(SJ_MACHINE x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm64")
    set(SJ_MACHINE aarch64)
else()
    set(SJ_MACHINE ${CMAKE_SYSTEM_PROCESSOR})
endif()
if(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/abi/arch/${SJ_MACHINE})
    message(FATAL_ERROR "Sojourn cannot be built for ${SJ_MACHINE}: agent/abi/arch has no folder of that name")
endif()

# sj_arch_sources(RESULT FOLDER MACHINE) stores the sources of FOLDER/arch/MACHINE, relative to FOLDER. The machine "*"
# means every machine. A component without such a folder has no sources there.
function(sj_arch_sources result folder machine)
    file(GLOB found CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/arch/${machine}/*.c ${folder}/arch/${machine}/*.S)
    set(${result} ${found} PARENT_SCOPE)
endfunction()
