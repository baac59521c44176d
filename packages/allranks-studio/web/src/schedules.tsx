import type { Folder } from "./api";
import { Empty } from "./parts";

export default function View(_: { folder: Folder; id?: string; tab?: string; ids?: string[] }) {
  return <Empty title="Not built yet." />;
}
