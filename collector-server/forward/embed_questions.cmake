# Writes OUTPUT: the questions of FOLDER for a cluster (name and text, in order of names), as C strings.
#   cmake -DFOLDER=schema/cluster_queries -DOUTPUT=questions.inc -P embed_questions.cmake
file(GLOB files "${FOLDER}/*.sql")
list(SORT files)
set(text "")
set(list "")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND text "static const char query_${name}[] = {${bytes}0};\n")
    string(APPEND list "    {\"${name}\", query_${name}},\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}static const sj_shipped_query queries[] = {\n${list}};\n")
