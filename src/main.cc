#include "app/run.h"

int main(int argc, char** argv) { return dartfs::app::Run(argc, argv); }
