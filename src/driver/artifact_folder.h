// The one way to write an artifact: everything goes into a folder that nobody looks at, and takes
// its place when it is whole. Whenever the process ends, at the place is what was there before or
// what is new, and nothing of both.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "driver/disk.h"
#include "driver/earlier_export.h"

namespace modelport::driver {

struct Destination {
  Path out;  // a folder; or a file, whose weights lie beside it
  bool is_file = false;
  // Names that readers take for parts of a model, which do not outlive it (see EarlierExport).
  std::vector<std::string> parts;
};

class ArtifactFolder {
 public:
  /// Removes what exports into the same place left when they were killed.
  explicit ArtifactFolder(Destination destination);
  ArtifactFolder(const ArtifactFolder&) = delete;
  ArtifactFolder& operator=(const ArtifactFolder&) = delete;
  ~ArtifactFolder() { discard(); }

  /// Where to write.
  const Path& folder() const { return folder_; }
  /// The folder that the files will be in.
  const Path& target() const { return target_; }
  /// Takes the place, after other exports that are about to; gives the files, of one model that
  /// first. A failure leaves what was there.
  std::vector<Path> commit();
  /// Removes what was not committed, and folders that were made for it; whether there was any. May
  /// come from another thread: it then waits for a commit that has begun.
  bool discard() noexcept;

 private:
  void open();
  void clean_up() noexcept;
  void sweep(const Path& folder) const;
  void take_place(const EarlierExport& earlier);
  bool carry_over(const EarlierExport& earlier);
  bool carry_over(const Path& relative, const EarlierExport& earlier);
  void drop_replaced(const EarlierExport& earlier) noexcept;

  std::mutex busy_;
  Destination destination_;
  std::string name_;  // of the file, or of the folder
  Path target_;
  Path home_;  // what `folder_` is in
  bool beside_ = false;
  Path folder_;
  Lock lock_;  // of `folder_`: says that its process is alive
  std::vector<Path> made_;
  std::vector<Path> carried_;
};

/// Whether files at this place, a folder or a file in it, are half old and half new, because the
/// export that was replacing them was killed or is not done.
bool is_half_replaced_at(const Path& place);

}  // namespace modelport::driver
