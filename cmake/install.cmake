# Where a distribution would put things.
if(TARGET dartfs_bin)
  install(TARGETS dartfs_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET dartfsctl_bin)
  install(TARGETS dartfsctl_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
file(GLOB man8 CONFIGURE_DEPENDS man/*.8)
file(GLOB man1 CONFIGURE_DEPENDS man/*.1)
install(FILES ${man8} DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES ${man1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md LICENSE CHANGELOG.md SECURITY.md src/fs/CATALOG.md src/app/CONTROL.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

# systemd looks below both /usr and /usr/local. What names installed files is made at installation,
# which may have another prefix than the configuration.
install(CODE "
  set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
  set(DARTFS_BINDIR \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
  set(DARTFS_SYSCONFDIR \"\${prefix}/etc\")
  if(prefix STREQUAL \"/usr\")
    set(DARTFS_SYSCONFDIR /etc)
  endif()
  configure_file(\"${PROJECT_SOURCE_DIR}/contrib/systemd/dartfs.service.in\"
    \"${PROJECT_BINARY_DIR}/dartfs.service\" @ONLY)
  file(INSTALL \"${PROJECT_BINARY_DIR}/dartfs.service\"
    \"${PROJECT_SOURCE_DIR}/contrib/systemd/dartfs.socket\"
    DESTINATION \"\${prefix}/lib/systemd/system\")
  # The administrator's own from then on.
  if(NOT EXISTS \"\$ENV{DESTDIR}\${DARTFS_SYSCONFDIR}/dartfs/dartfs.toml\")
    file(INSTALL \"${PROJECT_SOURCE_DIR}/contrib/dartfs.toml\"
      DESTINATION \"\${DARTFS_SYSCONFDIR}/dartfs\")
  endif()
")
install(FILES contrib/tmpfiles.d/dartfs.conf DESTINATION lib/tmpfiles.d)
install(FILES contrib/dartfs.toml contrib/systemd/README.md contrib/systemd/srv-images.mount
  contrib/systemd/srv-images.automount DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES contrib/completion/dartfs contrib/completion/dartfsctl
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
