# Writes OUTPUT, a source file that defines BuildId(): a hash over the files of SOURCE_DIR that the
# file NAMES lists, and over the text BUILD.
file(STRINGS ${NAMES} names)
set(text "${BUILD}\n")
foreach(name ${names})
  file(SHA256 ${SOURCE_DIR}/${name} hash)
  string(APPEND text "${name} ${hash}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING ${id} 0 12 id)
file(WRITE ${OUTPUT} "#include \"renzan/base/build_id.h\"

const char* renzan::BuildId() { return \"${id}\"; }
")
