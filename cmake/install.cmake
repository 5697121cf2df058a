# What a machine needs to run Renzan, and the Debian package (scripts/package).
include(GNUInstallDirs)

# The program makes man pages and completions from its own help.
set(PAGES ${PROJECT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${PAGES}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${PAGES}
  COMMAND renzan help --write-pages ${PAGES}
  COMMAND ${CMAKE_COMMAND} -E touch ${PAGES}/stamp
  DEPENDS renzan renzan_jobs VERBATIM)
add_custom_target(renzan_pages ALL DEPENDS ${PAGES}/stamp)

install(TARGETS renzan RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The verbs of the job system: renzan looks for it in ../lib.
install(TARGETS renzan_jobs LIBRARY DESTINATION lib)
# Started by the daemon, not by people: renzan looks for it in ../libexec/renzan.
install(TARGETS renzan-supervisor RUNTIME DESTINATION libexec/renzan)
# For programs in other languages: the C interface and the Python package. On Debian, /usr/lib and
# /usr/lib/python3/dist-packages are where they are looked for. scripts/wheel takes the libraries.
install(TARGETS renzan_shared renzan_shared_mpi renzan_s3 LIBRARY DESTINATION lib COMPONENT libraries)
# Not in the Debian package: Debian has no libcublasLt that it could depend on.
if(TARGET renzan_cuda_plugin)
  install(TARGETS renzan_cuda_plugin LIBRARY DESTINATION lib COMPONENT cuda EXCLUDE_FROM_ALL)
endif()
# Nor this: Debian has no Arrow yet that it could depend on.
if(TARGET renzan_parquet)
  install(TARGETS renzan_parquet LIBRARY DESTINATION lib COMPONENT parquet EXCLUDE_FROM_ALL)
endif()
install(FILES renzan/capi/renzan.h DESTINATION include)
configure_file(cmake/renzan.pc.in ${PROJECT_BINARY_DIR}/renzan.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/renzan.pc DESTINATION lib/pkgconfig)
install(DIRECTORY python/renzan DESTINATION lib/python3/dist-packages
  FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PAGES}/bash/renzan DESTINATION share/bash-completion/completions)
# Debian's zsh looks for the completions of packages in a directory of their own. The prefix is known
# only when it is installed.
install(CODE "
  set(functions site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(functions vendor-completions)
  endif()
  file(INSTALL \"${PAGES}/zsh/_renzan\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/zsh/\${functions}\")")
# Installed in the same layout, so that links between the documents work.
install(FILES README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME renzan)
set(CPACK_PACKAGE_CONTACT "The Renzan developers <renzan@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trainer of recommendation models and scheduler of such jobs")
set(CPACK_PACKAGE_DESCRIPTION
"Renzan trains recommendation models (DLRM, DLRM-DCNv2) on many workers, and
schedules such training jobs on machines that teams share. Placement never changes
arithmetic: the trained model has the same SHA-256 on any number of workers.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the libraries that the programs are linked with
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, python3-numpy")  # mpirun; the Python package
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, man-db, python3-torch")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/postinst
  ${PROJECT_SOURCE_DIR}/cmake/debian/prerm)
include(CPack)
