program shapes;
{$mode objfpc}
uses sysutils;
type
  TA = class function F(n: Integer): Integer; virtual; end;
  TB = class(TA) function F(n: Integer): Integer; override; end;
function TA.F(n: Integer): Integer; begin Result := n + 1; end;
function TB.F(n: Integer): Integer;
begin
  if n mod 5 = 0 then raise Exception.Create('x');
  Result := n * 2;
end;
function Deep(n: Integer; a: TA): Integer;
  procedure Inner(k: Integer);
  begin
    Result := Result + k + n;
    if k > 0 then Inner(k - 1);
  end;
begin
  Result := 1;
  if n = 0 then Exit;
  try
    Result := Deep(n - 1, a) + a.F(n);
    Inner(2);
  except
    on E: Exception do Result := n;
  end;
end;
var
  a, b: TA; i, s: Integer; t: string;
begin
  a := TA.Create; b := TB.Create; s := 0;
  for i := 0 to 5 do begin
    s := s + Deep(i * 2, a) + Deep(i * 3, b);
    t := Format('%d %s', [i, FloatToStr(i / 3)]);
    s := s + Length(t);
  end;
  a.Free; b.Free;
  if s = 0 then Halt(1);
end.
