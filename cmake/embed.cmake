# cmake -D OUTPUT= -D HEADER= -D NAMESPACE= -D TOP= -D PAIRS=<constant>,<file>,... -P embed.cmake:
# writes the .cc for dartfs_embed (dartfs.cmake). Byte by byte, so that nothing needs an escape.
string(REPLACE "," ";" pairs "${PAIRS}")
set(text "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
while(pairs)
  list(POP_FRONT pairs constant file)
  file(READ ${TOP}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND text "static constexpr char ${constant}Bytes[] = {${bytes}};\n"
    "const std::string_view ${constant}(${constant}Bytes, sizeof ${constant}Bytes);\n")
endwhile()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
