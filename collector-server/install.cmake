# Installs each file in its folder below any prefix. Programs find the agent in ../lib/sojourn, so the
# library folder is lib, whichever name the distribution uses.
install(TARGETS sojourn sojournd sojourn-device RUNTIME DESTINATION bin)
install(PROGRAMS ${CMAKE_SOURCE_DIR}/agent/daemon/install.sh DESTINATION bin RENAME sojourn-device-install)
install(TARGETS sojourn-agent sojourn-sqlite LIBRARY DESTINATION lib/sojourn)
if(TARGET sojourn-agent-aarch64) # a machine other than AArch64 records its programs under qemu-user
    install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libsojourn-agent-aarch64.so DESTINATION lib/sojourn)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/agent/include/sojourn.h DESTINATION include)
install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/sojourn.jar DESTINATION share/java)

file(GLOB manual_pages ${CMAKE_SOURCE_DIR}/agent/man/*.[1-8] ${CMAKE_SOURCE_DIR}/collector-server/man/*.[1-8])
foreach(page ${manual_pages})
    string(REGEX MATCH "[1-8]$" section ${page})
    install(FILES ${page} DESTINATION share/man/man${section})
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/generated/completion/sojourn.bash
    DESTINATION share/bash-completion/completions RENAME sojourn)
install(FILES ${CMAKE_BINARY_DIR}/generated/completion/sojourn.zsh
    DESTINATION share/zsh/vendor-completions RENAME _sojourn)
install(FILES ${CMAKE_BINARY_DIR}/generated/completion/sojourn.fish
    DESTINATION share/fish/vendor_completions.d)
install(FILES ${CMAKE_SOURCE_DIR}/collector-server/sojournd/sojourn.rules.yml DESTINATION share/sojourn)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/collector-server/python/sojourn
    DESTINATION lib/python3/dist-packages FILES_MATCHING PATTERN *.py)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE
    ${CMAKE_SOURCE_DIR}/schema/commands.schema.json DESTINATION share/doc/sojourn)

# These name the prefix, which is known when installing only.
configure_file(${CMAKE_SOURCE_DIR}/agent/include/sojourn.pc.in ${CMAKE_BINARY_DIR}/sojourn.pc.in @ONLY)
set(units ${CMAKE_SOURCE_DIR}/agent/daemon/systemd/sojourn-device.service
    ${CMAKE_SOURCE_DIR}/collector-server/sojournd/sojournd.service
    ${CMAKE_SOURCE_DIR}/collector-server/sojournd/sojourn-backup.service
    ${CMAKE_SOURCE_DIR}/collector-server/sojournd/sojourn-backup.timer)
install(CODE "
    function(install_with_prefix input folder name)
        file(READ \${input} text)
        string(REPLACE /usr/bin/ \${CMAKE_INSTALL_PREFIX}/bin/ text \"\${text}\")
        string(REPLACE %PREFIX% \${CMAKE_INSTALL_PREFIX} text \"\${text}\")
        set(output \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${folder}/\${name})
        message(STATUS \"Installing: \${output}\")
        file(WRITE \${output} \"\${text}\")
    endfunction()
    foreach(unit ${units})
        get_filename_component(name \${unit} NAME)
        install_with_prefix(\${unit} lib/systemd/system \${name})
    endforeach()
    install_with_prefix(${CMAKE_BINARY_DIR}/sojourn.pc.in lib/pkgconfig sojourn.pc)")
