# Writes OUTPUT: the shipped queries of FOLDER (name and text, in order of names) and the description
# of the schema, as C strings.
#   cmake -DFOLDER=schema/queries -DSCHEMA=schema/README.md -DOUTPUT=texts.inc -P embed_texts.cmake
function(to_bytes file output)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    set(${output} "${bytes}0" PARENT_SCOPE)
endfunction()

file(GLOB files "${FOLDER}/*.sql")
list(SORT files)
set(text "")
set(list "")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    to_bytes("${file}" bytes)
    string(APPEND text "static const char query_${name}[] = {${bytes}};\n")
    string(APPEND list "    {\"${name}\", query_${name}},\n")
endforeach()
to_bytes("${SCHEMA}" bytes)
string(REPLACE "0x" "(char)0x" bytes "${bytes}") # beyond ASCII in prose
string(APPEND text "static const char schema_text[] = {${bytes}};\n")
file(WRITE "${OUTPUT}" "${text}static const sj_shipped_query queries[] = {\n${list}};\n")
